// An answer as elements: the answer in its passage, the other candidates, the times, the shards.

import { actions, placeOf } from "/static/actions.js";
import { client } from "/static/client.js";
import { count, foreign, make, percent, plain, plural, quiet, section, table } from "/static/dom.js";
import { dataUrl } from "/static/pages.js";
import { placeText } from "/static/place.js";
import { passagesLeft } from "/static/passages.js";
import { quoteOf } from "/static/shardqa.js";
import { listsOf, sentencesAround, split } from "/static/text.js";
import { why } from "/static/why.js";

const SURE = 0.8; // score from which an answer is called so
const LIKELY = 0.6;
const LONG = 90; // characters of an answer that gets smaller type
const MANY = 320; // characters of sentences from which two of them are shown at first
const NEAREST = "These sentences come nearest.";
const PHASES = [
  ["cache", "looked for a kept answer"],
  ["terms", "collected term statistics"],
  ["rank", "ranked passages"],
  ["read", "read passages"],
];

/** All parts of an answer, in reading order. `again` asks the same question past the caches. */
export function answerParts(answer, again) {
  return [
    answer.partial ? partialNote(answer) : null,
    Object.entries(answer.corrected).map(([slip, word]) => correction(answer, slip, word)),
    answer.warnings.map((warning) => note(`Mind that ${warning}.`)),
    answer.no_answer ? noAnswerCard(answer) : [absentNote(answer), answerCard(answer)],
    isFar(answer) ? passagesLeft(answer) : candidatesSection(answer),
    answer.pinned ? [] : [why(answer), howSection(answer, again)],
  ]
    .flat()
    .filter(Boolean);
}

const absentNote = ({ absent }) =>
  absent.length > 0 && note(["No passage mentions ", ...named(absent, (word) => make("b", {}, word)), "."]);

const note = (text) => make("p", { class: "note", role: "note" }, text);

/** Says which word was asked in place of a slip, and links to the question with the slip in quotation marks. */
function correction({ question, corpus }, slip, word) {
  const asWritten = question.replace(new RegExp(`(?<!\\p{L})${slip}(?!\\p{L})`, "giu"), '"$&"');
  const link = make("a", { href: `/?${new URLSearchParams({ q: asWritten, corpus })}` }, `Ask for “${slip}”`);
  return note(["Showing results for ", make("b", {}, word), ". ", link, "."]);
}

/** Whether nothing is answered and nothing is near. */
const isFar = (answer) => answer.no_answer && answer.parts.length === 0;

/** One sentence for screen readers. */
export function spoken(answer) {
  if (isFar(answer)) return unsaid(answer).join("");
  if (answer.no_answer) return `No sure answer. Nearest: ${quoteOf(answer.parts[0])}`;
  const words = answer.form === "list" ? itemsOf(answer).map((one) => one.text).join(", ") : answer.answer;
  const how = answer.pinned ? "Pinned" : confidence(answer);
  return `Answer: ${words.trim().replace(/\.$/, "")}. ${how}, from ${answer.title || answer.document}.`;
}

function answerCard(answer) {
  if (answer.form !== "span") return partsCard(answer);
  const quote = [passage(answer)].flat();
  return make(
    "article",
    { class: "card answer", "aria-label": "Answer" },
    make("p", { class: answer.answer.length > LONG ? "answer-text long" : "answer-text", dir: "auto" }, answer.answer),
    make(
      "p",
      { class: "facts" },
      sure(answer),
      documentLink(answer, { ...answer, corpus: answer.document_corpus }, answer.title),
      placeOf(answer.place, answer.title),
    ),
    pageOf(answer),
    quote,
    evidence(answer, quote),
    actions(answer),
  );
}

/** The page of the file with the answer marked, small, where the file is kept; it leads to the page. */
function pageOf(answer) {
  if (!answer.place?.page) return null;
  const { document_corpus: corpus, document, start, end } = answer;
  const link = linkTo(answer, { corpus, document, start, end }, "");
  link.className = "of-page";
  link.hidden = true;
  client
    .page(document, { corpus, start, end })
    .then(dataUrl)
    .then((src) => {
      link.replaceChildren(make("img", { src, alt: `Page ${answer.place.page}, the answer marked` }));
      link.hidden = false;
    })
    .catch(() => {}); // the answer is in its sentence all the same
  return link;
}

/** Sentences, or a list of items; each leads to its place, and one line says where they are from. */
function partsCard(answer) {
  const isList = answer.form === "list";
  const documents = new Map(answer.parts.map((part) => [`${part.corpus} ${part.document}`, part]).reverse());
  const sources = [...documents.values()].reverse().map((part) => documentLink(answer, part, part.title));
  return make(
    "article",
    { class: "card answer", "aria-label": "Answer" },
    isList
      ? itemList(answer)
      : sentences(answer),
    make("p", { class: "facts" }, sure(answer), sources, documents.size === 1 && placeOf(answer.place, answer.title)),
    actions(answer),
  );
}

/** Sentences: where they are many, the two around the likeliest span of the likeliest part, and all on a press. */
function sentences(answer) {
  const every = answer.parts.map((part) => words(part, "answer-text long"));
  const best = answer.parts.reduce((one, other) => (other.score > one.score ? other : one));
  if (best.written || answer.parts.reduce((sum, part) => sum + part.text.length, 0) <= MANY) return every;
  const isIn = (one) => one.document === best.document && best.start <= one.start && one.end <= best.end;
  const { start, end } = answer.n_best.find(isIn) ?? { start: best.start, end: best.start + 1 };
  const [before, inside] = split(best.text, start - best.start, end - best.start);
  const [from, to] = sentencesAround(best.text, before.length, before.length + inside.length);
  const some = make("div", {}, words({ ...best, text: best.text.slice(from, to).trim() }, "answer-text long"));
  return [some, moreButton(() => some.replaceChildren(...every))];
}

function moreButton(show) {
  const more = plain("Show more", () => (show(), more.remove()), { class: "plain more" });
  return more;
}

/** The items of a list; one that stands as such in its document keeps its numbers. */
function itemsOf(answer) {
  return answer.parts.flatMap((part) => {
    const points = (from, to) => [...part.text.slice(from, to)].length;
    const item = ({ number, first, last }) => {
      const start = part.start + points(0, first);
      return { ...part, number, text: part.text.slice(first, last), start, end: start + points(first, last) };
    };
    return listsOf(part.text)[0]?.map(item) ?? [{ ...part, text: quoteOf(part) }];
  });
}

function itemList(answer) {
  const items = itemsOf(answer);
  const item = (one) => make("li", { dir: "auto", value: one.number }, linkTo(answer, one, one.text));
  return make(items[0].number ? "ol" : "ul", { class: "items" }, items.map(item));
}

function noAnswerCard(answer) {
  const far = make("p", { class: "answer-text" }, unsaid(answer, (word) => make("b", {}, word)));
  const look = { class: "card answer none", "aria-label": isFar(answer) ? "No answer" : "No sure answer" };
  if (isFar(answer)) return make("article", look, far, actions(answer));
  return make(
    "article",
    look,
    make("p", { class: "answer-text" }, "No sure answer."),
    make("p", { class: "lead" }, answer.absent.length > 0 && ["No passage has ", named(answer.absent), ". "], NEAREST),
    answer.parts.map((part, n) => excerpt(answer, part, part.document !== answer.parts[n + 1]?.document)),
    actions(answer),
  );
}

/** What the documents leave out, in pieces; `look` makes something of each word. */
const unsaid = ({ absent }, look) =>
  absent.length > 0
    ? ["Your documents don’t mention ", ...named(absent, look), "."]
    : ["No answer was found in your documents."];

const named = (words, look = (word) => word) =>
  words.flatMap((word, n) => [n === 0 ? "" : n === words.length - 1 ? " or " : ", ", look(word)]);

/** A sentence with its place, and its document unless the next one is of the same. */
function excerpt(answer, part, isLast) {
  return make(
    "div",
    { class: "evidence" },
    words(part),
    make("p", { class: "facts" }, isLast && documentLink(answer, part, part.title), placeOf(part.place, part.title)),
  );
}

/** An excerpt as its file has it: of a table the row. */
function words(part, look = null) {
  return part.written ? row(part.place.cells) : make("p", { class: look, dir: "auto" }, part.text);
}

function row(cells, answer = "") {
  const has = cells.filter(([, value]) => answer && value.includes(answer));
  const own = has.find(([, value]) => value === answer) ?? has[0];
  const inside = (cell) => {
    if (cell !== own) return cell[1];
    const [before, ...after] = cell[1].split(answer);
    return [before, make("mark", {}, answer), after.join(answer)];
  };
  const names = make("tr", {}, cells.map(([name]) => make("th", { dir: "auto" }, name)));
  const values = make("tr", {}, cells.map((cell) => make("td", { dir: "auto" }, inside(cell))));
  const whole = make("table", {}, make("thead", {}, names), make("tbody", {}, values));
  whole.style.setProperty("--cells", cells.length);
  return make("div", { class: "row-of-table", tabindex: 0, role: "region", "aria-label": "Row of the table" }, whole);
}

/** A word for a score. */
export function confidence({ score }) {
  if (score >= SURE) return "Sure";
  return score >= LIKELY ? "Likely" : "Perhaps";
}

function sure(answer) {
  if (answer.pinned) return pin();
  return make(
    "details",
    { class: "sure" },
    make("summary", {}, gauge(answer.score), `${confidence(answer)} · ${percent(answer.score)}`),
    make(
      "p",
      { class: "explained" },
      `Of answers with such a score, about ${percent(answer.score)} are right. `,
      `Sure begins at ${percent(SURE)}, likely at ${percent(LIKELY)}. `,
      `Below ${percent(answer.needed)} nothing was answered.`,
    ),
  );
}

/** In place of a score: nothing was searched for this answer. */
const pin = () =>
  make(
    "details",
    { class: "sure pinned" },
    make("summary", {}, "Pinned"),
    make("p", { class: "explained" }, "Whoever keeps these documents has chosen this place. Nothing was searched."),
  );

function gauge(score) {
  const fill = make("i");
  fill.style.width = `${Math.max(0, Math.min(1, score)) * 100}%`;
  return make("span", { class: "gauge", "aria-hidden": "true" }, fill);
}

/** The link with its corpus, where several were asked. */
function documentLink(answer, part, text) {
  const link = linkTo(answer, part, text);
  return answer.corpus.includes(",") ? make("span", {}, link, quiet(` in ${part.corpus}`)) : link;
}

function linkTo(answer, { corpus, document, start, end }, text) {
  const query = new URLSearchParams({ corpus, id: document, start, end, q: answer.question, asked: answer.corpus });
  return make("a", { class: "doc", href: `/document?${query}` }, foreign(text || document));
}

function cacheChip(answer, again) {
  if (!answer.cached) return make("span", { class: "chip" }, "read just now");
  const place = answer.cache === "process" ? "kept in memory" : "kept in Redis";
  return [make("span", { class: "chip" }, place), " ", plain("Read afresh", again)];
}

/** The two sentences around the mark; the rest of the passage on a press. */
function passage(candidate) {
  if (candidate.place?.cells) return row(candidate.place.cells, candidate.answer);
  if (candidate.passage === candidate.answer) return null;
  const { start, end, passage_start: begin } = candidate;
  const [before, inside, after] = split(candidate.passage, start - begin, end - begin);
  const mark = make("mark", {}, inside);
  const [from, to] = sentencesAround(candidate.passage, before.length, before.length + inside.length);
  const head = pastHeading(before.slice(from).trimStart(), candidate.place);
  const tail = candidate.passage.slice(before.length + inside.length, to).trimEnd();
  const quote = make("blockquote", { class: "passage", dir: "auto" }, head, mark, tail);
  if (!before.slice(0, from).trim() && !candidate.passage.slice(to).trim()) return quote;
  return [quote, moreButton(() => quote.replaceChildren(before, mark, after))];
}

/** What follows the heading that a piece of text opens with. */
function pastHeading(text, place) {
  const heading = `${place?.headings?.at(-1)}\n`;
  return text.startsWith(heading) ? text.slice(heading.length).trimStart() : text;
}

/** The sentences that support the answer, where they are more than what is quoted of its own passage. */
function evidence(answer, quote) {
  const said = quote.map((one) => one?.textContent).join("");
  const isOwn = (one) => one.start <= answer.start && answer.start < one.end;
  const further = answer.parts.filter((one) => !isOwn(one) && !said.includes(one.text.trim()));
  if (further.length === 0) return null;
  const [first, ...others] = further.map((one) => words(one));
  const rest = make("div", {});
  const more = others.length > 0 ? moreButton(() => rest.append(...others)) : null;
  return make("div", { class: "evidence" }, make("h2", {}, "Also says"), first, rest, more);
}

function partialNote(answer) {
  return note(
    `${plural(answer.failed.length, "shard")} did not answer (${answer.failed.join(", ")}): ` +
      "the documents there were not looked at.",
  );
}

function candidatesSection(answer) {
  const others = answer.n_best.filter((one) => one.possible);
  if (others.length === 0) return null;
  const list = make("ol", { class: "candidates" }, others.map((one) => candidateRow(answer, one)));
  return section(answer.no_answer ? "Closest guesses" : "Other possible answers", list);
}

/** The shard whose reader found the answer; a span is always the first of the candidates. */
const shardOf = (answer) => answer.n_best[0].shard;

function candidateRow(answer, one) {
  const summary = make(
    "summary",
    {},
    make("span", { class: "what", dir: "auto" }, one.answer),
    make("span", { class: "from" }, foreign(one.title || one.document)),
    gauge(one.score),
    make("span", { class: "percent" }, percent(one.score)),
  );
  const more = make(
    "div",
    { class: "more" },
    passage(one),
    documentLink(answer, one, one.title),
    " ",
    placeOf(one.place, one.title),
  );
  return make("li", {}, make("details", {}, summary, more));
}

const milliseconds = (value) => `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;

/** What an operator wants to know, folded away. */
function howSection(answer, again) {
  const { place, start, end } = answer;
  const at = place?.cells ? placeText(place) || "a row" : `characters ${count(start ?? 0)} to ${count(end ?? 0)}`;
  const where = answer.no_answer || answer.form !== "span" ? null : `The answer is at ${at} of ${answer.document}.`;
  return make(
    "details",
    { class: "how" },
    make("summary", {}, "How it was found"),
    make("p", { class: "facts" }, cacheChip(answer, again), quiet(where)),
    timesSection(answer),
    shardsSection(answer),
  );
}

function timesSection(answer) {
  const timing = answer.timing;
  const parts = PHASES.map(([name, what]) => ({ name, what, time: timing[name] })).filter((part) => part.time > 0);
  const rest = timing.total - parts.reduce((sum, part) => sum + part.time, 0);
  if (rest > 0) parts.push({ name: "rest", what: "all else", time: rest });
  const slices = parts.map((part) => timeSlice(part, timing.total));
  const bar = make("div", { class: "times", "aria-hidden": "true" }, slices);
  const legend = parts.map((part) =>
    make("li", {}, make("i", { class: `of-${part.name}` }), `${part.what} `, make("b", {}, milliseconds(part.time))),
  );
  return make(
    "section",
    { class: "section", "aria-label": "Times" },
    make("h2", {}, "Where the time went", make("b", {}, milliseconds(timing.total))),
    bar,
    make("ul", { class: "legend" }, legend),
  );
}

function timeSlice(part, total) {
  const slice = make("i", { class: `of-${part.name}`, title: `${part.what}: ${milliseconds(part.time)}` });
  slice.style.flexGrow = String((100 * part.time) / total);
  return slice;
}

function shardsSection(answer) {
  if (answer.shards.length === 0) return null;
  const winner = answer.no_answer || answer.form !== "span" ? null : shardOf(answer);
  const gave = make("span", {}, " ", make("span", { class: "chip" }, "gave the answer"));
  const rows = answer.shards.map((shard) => [
    make("code", {}, shard.node),
    [make("code", {}, shard.tag), shard.tag === winner ? gave : null],
    count(shard.passages),
    shard.cached ? "kept answer" : "read",
    shard.us.total === undefined ? "" : milliseconds(shard.us.total / 1000),
  ]);
  const name = answer.cached ? "Which shards read it, when it was read" : "Which shards read it";
  return section(name, table(["Node", "Shard", "Passages", "How", "Time there"], rows));
}
