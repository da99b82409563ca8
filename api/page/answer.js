// An answer as elements: the answer in its passage, the other candidates, the times, the shards.

import { actions, placeOf } from "/static/actions.js";
import { count, foreign, make, percent, plural } from "/static/dom.js";
import { split } from "/static/text.js";
import { why } from "/static/why.js";

const LONG = 90; // characters of an answer that gets smaller type
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
    answer.no_answer ? noAnswerCard(answer, again) : answerCard(answer, again),
    candidatesSection(answer),
    why(answer),
    howSection(answer),
  ].filter(Boolean);
}

/** One sentence for screen readers. */
export function spoken(answer) {
  if (answer.no_answer) return answer.parts.length > 0 ? `No sure answer. Nearest: ${answer.parts[0].text}` : "The documents don’t say.";
  return `Answer: ${answer.answer}. ${confidence(answer)}, from ${answer.title || answer.document}.`;
}

function answerCard(answer, again) {
  if (answer.form !== "span") return partsCard(answer, again);
  return make(
    "article",
    { class: "card answer", "aria-label": "Answer" },
    make("p", { class: answer.answer.length > LONG ? "answer-text long" : "answer-text", dir: "auto" }, answer.answer),
    make(
      "p",
      { class: "facts" },
      sure(answer),
      documentLink(answer, answer.document, answer.title, answer.start, answer.end),
      placeOf(answer.place),
      cacheChip(answer, again),
    ),
    passage(answer),
    evidence(answer),
    actions(answer),
  );
}

/** Sentences or the items of a list, each with the way to its place. */
function partsCard(answer, again) {
  return make(
    "article",
    { class: "card answer", "aria-label": "Answer" },
    answer.parts.map((part) => excerpt(answer, part, "answer-text long")),
    make("p", { class: "facts" }, sure(answer), cacheChip(answer, again)),
    actions(answer),
  );
}

function noAnswerCard(answer, again) {
  const isNear = answer.parts.length > 0;
  return make(
    "article",
    { class: "card answer none", "aria-label": isNear ? "No sure answer" : "No answer" },
    make("p", { class: "answer-text" }, isNear ? "No sure answer." : "The documents don’t say."),
    make(
      "p",
      { class: "lead" },
      isNear ? "These sentences come nearest." : `No passage of ${answer.corpus} has the words of this question.`,
    ),
    answer.parts.map((part) => excerpt(answer, part)),
    make("p", { class: "facts" }, cacheChip(answer, again)),
    actions(answer),
  );
}

function excerpt(answer, part, look = null) {
  return make(
    "div",
    { class: "evidence" },
    make("p", { class: look, dir: "auto" }, part.text),
    make("p", { class: "facts" }, documentLink(answer, part.document, part.title, part.start, part.end), placeOf(part.place)),
  );
}

/** Three words for a score, cut where the reader's own lines are. */
export function confidence({ score, lines }) {
  if (score >= lines.sure) return "Sure";
  return score >= lines.balanced ? "Likely" : "Unsure";
}

function sure(answer) {
  const { lines } = answer;
  return make(
    "details",
    { class: "sure" },
    make("summary", {}, gauge(answer.score), confidence(answer)),
    make(
      "p",
      { class: "explained" },
      `The score is ${percent(answer.score)}: of answers with such a score, about so many are right. `,
      `Sure begins at ${percent(lines.sure)}, likely at ${percent(lines.balanced)}. `,
      `Below ${percent(answer.needed)} nothing was answered.`,
    ),
  );
}

function gauge(score) {
  const fill = make("i");
  fill.style.width = `${Math.max(0, Math.min(1, score)) * 100}%`;
  return make("span", { class: "gauge", "aria-hidden": "true" }, fill);
}

function documentLink(answer, id, title, start, end) {
  const query = new URLSearchParams({ corpus: answer.corpus, id, start, end, q: answer.question });
  return make("a", { class: "doc", href: `/document?${query}` }, foreign(title || id));
}

function cacheChip(answer, again) {
  if (!answer.cached) return make("span", { class: "chip" }, "read just now");
  const place = answer.cache === "process" ? "kept in memory" : "kept in Redis";
  return make("span", {}, make("span", { class: "chip" }, place), " ", make("button", { type: "button", class: "plain", click: again }, "Read afresh"));
}

function passage(candidate) {
  const [before, inside, after] = split(
    candidate.passage,
    candidate.start - candidate.passage_start,
    candidate.end - candidate.passage_start,
  );
  return make("blockquote", { class: "passage", dir: "auto" }, before, make("mark", {}, inside), after);
}

/** The sentences that support the answer, where they are more than its own. */
function evidence(answer) {
  const further = answer.evidence.filter((one) => !(one.start <= answer.start && answer.start < one.end));
  if (further.length === 0) return null;
  return make("div", { class: "evidence" }, make("h2", {}, "Also says"), further.map((one) => make("p", { dir: "auto" }, one.text)));
}

function partialNote(answer) {
  return make(
    "p",
    { class: "note", role: "note" },
    `${plural(answer.failed.length, "shard", "shards")} did not answer (${answer.failed.join(", ")}): the documents there were not looked at.`,
  );
}

function candidatesSection(answer) {
  const others = answer.no_answer || answer.form !== "span" ? answer.n_best : answer.n_best.filter((one) => !isAnswer(one, answer));
  if (others.length === 0) return null;
  return make(
    "section",
    { class: "section", "aria-label": "Candidates" },
    make("h2", {}, answer.no_answer ? "Closest guesses" : "Other candidates"),
    make("ol", { class: "candidates" }, others.map((one) => candidateRow(answer, one))),
  );
}

/** The shard whose reader found the answer; a span is always the first of the candidates. */
const shardOf = (answer) => answer.n_best[0].shard;

const isAnswer = (one, answer) => one.document === answer.document && one.start === answer.start && one.end === answer.end;

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
    documentLink(answer, one.document, one.title, one.start, one.end),
    " ",
    placeOf(one.place),
  );
  return make("li", {}, make("details", {}, summary, more));
}

const milliseconds = (value) => `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;

/** What an operator wants to know, folded away. */
function howSection(answer) {
  const where = answer.no_answer || answer.form !== "span" ? null : `The answer is at characters ${count(answer.start)} to ${count(answer.end)} of ${answer.document}.`;
  return make(
    "details",
    { class: "how" },
    make("summary", {}, "How it was found", make("b", {}, milliseconds(answer.timing.total))),
    make("p", { class: "quiet" }, where),
    timesSection(answer),
    shardsSection(answer),
  );
}

function timesSection(answer) {
  const timing = answer.timing;
  const parts = PHASES.map(([name, what]) => ({ name, what, time: timing[name] })).filter((part) => part.time > 0);
  const rest = timing.total - parts.reduce((sum, part) => sum + part.time, 0);
  if (rest > 0) parts.push({ name: "rest", what: "all else", time: rest });
  const bar = make("div", { class: "times", "aria-hidden": "true" }, parts.map((part) => timeSlice(part, timing.total)));
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
  const rows = answer.shards.map((shard) =>
    make(
      "tr",
      {},
      make("td", {}, make("code", {}, shard.node)),
      make("td", {}, make("code", {}, shard.tag), shard.tag === winner ? make("span", {}, " ", make("span", { class: "chip" }, "gave the answer")) : null),
      make("td", {}, count(shard.passages)),
      make("td", {}, shard.cached ? "kept answer" : "read"),
      make("td", {}, shard.us.total === undefined ? "" : milliseconds(shard.us.total / 1000)),
    ),
  );
  const heads = ["Node", "Shard", "Passages", "How", "Time there"].map((head) => make("th", { scope: "col" }, head));
  return make(
    "section",
    { class: "section", "aria-label": "Shards" },
    make("h2", {}, answer.cached ? "Which shards read it, when it was read" : "Which shards read it"),
    make("div", { class: "scroll", tabindex: "0" }, make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows))),
  );
}
