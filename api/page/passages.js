// Passages of a question, best first, with its words marked: a view beside the answer, and what is left where there is none.

import { foreign, make, plain, plural } from "/static/dom.js";
import { nodesOf } from "/static/blocks.js";
import { placeOf } from "/static/actions.js";
import { client } from "/static/client.js";
import { sentencesAround, split, utf16Index } from "/static/text.js";

const FOUND = 100; // passages that are looked through
const SHOWN = 10; // at first, and by each press more
const LEFT = 3; // shown where nothing is answered
const FACETS = [
  ["Corpus", ({ corpus }) => corpus],
  ["Folder", ({ document }) => document.split("/").slice(0, -1).join("/")],
  ["Kind", ({ document }) => document.match(/\.([a-z0-9]{1,5})$/i)?.[1].toUpperCase()],
  ["Year", ({ metadata }) => String(metadata.date ?? metadata.year ?? "").match(/\b\d{4}\b/)?.[0]],
];

/** The elements of the view; nothing is read, so they are there at once. */
export async function passagesView(question, options) {
  const found = await client.search(question, { ...options, limit: FOUND });
  const isWordless = !found.passages.some((one) => one.highlights.length > 0);
  const passages = isWordless ? found.passages.slice(0, LEFT) : distinct(found.passages);
  const list = make("ol", { class: "found" });
  const counted = make("h2", {});
  const more = plain("Show more", () => show(shown + SHOWN));
  const choices = FACETS.map(([name, of]) => ({ name, of, select: chooser(name, of, passages, () => show(SHOWN)) })).filter((one) => one.select);
  let shown = 0;
  function show(count) {
    const fit = passages.filter((one) => choices.every(({ of, select }) => !select.value || of(one) === select.value));
    shown = count;
    list.replaceChildren(...fit.slice(0, count).map((one) => item(one, found)));
    counted.textContent = isWordless ? "No passage has words of this question; these mean most nearly what it asks" : plural(fit.length, "passage", "passages");
    more.hidden = fit.length <= count;
  }
  show(SHOWN);
  const facets = choices.map(({ name, select }) => make("label", {}, make("span", { class: "quiet" }, name), select));
  return [make("section", { class: "section", "aria-label": "Passages" }, make("div", { class: "facets" }, counted, facets), list, more)];
}

/** Those that have words of the question which no better one shows, or mean nearly what it asks; passages overlap. */
function distinct(passages) {
  const shown = [];
  const isShown = (passage) => ({ start, end }) => shown.some((one) => one.corpus === passage.corpus && one.document === passage.document && one.start <= start && end <= one.end);
  for (const one of passages) {
    const isNear = one.highlights.length === 0 && one.score > passages[0].score / 2;
    if (isNear || !one.highlights.every(isShown(one))) shown.push({ ...one, opening: one.highlights.find((mark) => !isShown(one)(mark)) });
  }
  return shown;
}

/** A choice among the values of a facet; null where there are not two. */
function chooser(name, of, passages, change) {
  const counts = new Map();
  for (const one of passages) counts.set(of(one), (counts.get(of(one)) ?? 0) + 1);
  const values = [...counts].filter(([value]) => value).sort((one, other) => other[1] - one[1]);
  if (counts.size < 2 || values.length === 0) return null;
  return make("select", { change }, make("option", { value: "" }, "all"), values.map(([value, count]) => make("option", { value }, `${value} (${count})`)));
}

/** The few passages that have words of a question which is not answered; empty where none has. */
export function passagesLeft(answer) {
  const section = make("section", { class: "section", "aria-label": "Passages", hidden: true });
  client
    .search(answer.question, { corpus: answer.corpus, filter: answer.filter, limit: SHOWN })
    .then((found) => {
      const fit = distinct(found.passages).filter((one) => one.highlights.length > 0).slice(0, LEFT);
      section.hidden = fit.length === 0;
      section.append(make("h2", {}, `Passages with ${answer.absent.length > 0 ? "other " : ""}words of the question`), make("ol", { class: "found" }, fit.map((one) => item(one, found))));
    })
    .catch(() => {}); // a help that is not there harms nobody
  return section;
}

function item(one, { question, corpus }) {
  const query = new URLSearchParams({ corpus: one.corpus, id: one.document, start: one.start, end: one.end, q: question, asked: corpus });
  return make(
    "li",
    {},
    make("p", { class: "facts" }, make("a", { class: "doc", href: `/document?${query}` }, foreign(one.title || one.document)), corpus.includes(",") ? make("span", { class: "quiet" }, `in ${one.corpus}`) : null, placeOf(one.place, one.title)),
    one.written ? asTable(one) : make("p", { class: "passage", dir: "auto" }, excerpt(one)),
  );
}

/** A passage with rows of a table, as its file has them. */
export function asTable({ text, start, places, highlights }) {
  const made = (first, last) => make("mark", {}, text.slice(first, last));
  const marks = joined(text, start, highlights).map((mark) => {
    const first = utf16Index(text, mark.start - start);
    return { first, last: utf16Index(text, mark.end - mark.start, first), made };
  });
  const own = places.map(([at, place]) => [Math.max(0, at - start), place]);
  return make("div", { class: "passage of-rows", dir: "auto" }, nodesOf({ text, places: own }, marks));
}

/** From the sentence of the first mark that is not shown before; the style cuts what is more than a few lines. */
function excerpt(one) {
  if (!one.opening) return highlighted(one).map(closed);
  const place = utf16Index(one.text, one.opening.start - one.start);
  const [from] = sentencesAround(one.text, place, place);
  const start = one.start + [...one.text.slice(0, from)].length;
  const words = highlighted({ text: one.text.slice(from), start, highlights: one.highlights });
  return [from > 0 ? "… " : "", words.map(closed)];
}

/** Lines stay, empty ones do not. */
const closed = (piece) => (typeof piece === "string" ? piece.replace(/\s*\n\s*/g, "\n") : piece);

/** The text of a passage with the question's words marked. */
export function highlighted({ text, start, highlights }) {
  const pieces = [];
  let rest = text;
  let place = start;
  for (const { start: first, end: last } of joined(text, start, highlights)) {
    if (first < place) continue;
    const [before, inside, after] = split(rest, first - place, last - place);
    pieces.push(before, make("mark", {}, inside));
    rest = after;
    place = last;
  }
  return [...pieces, rest];
}

/** Marks with nothing but a hyphen or the like between them as one: UTF-8. */
function joined(text, start, highlights) {
  const points = [...text];
  const marks = [];
  for (const mark of highlights) {
    const last = marks.at(-1);
    if (last && mark.start - last.end === 1 && /[^\s]/.test(points[last.end - start] ?? " ")) last.end = mark.end;
    else marks.push({ ...mark });
  }
  return marks;
}

/** The marked words of a passage, each once. */
export function markedWords(passage) {
  return highlighted(passage).filter((piece) => piece instanceof Element).map((mark) => mark.textContent).filter((word, n, all) => all.findIndex((other) => other.toLowerCase() === word.toLowerCase()) === n);
}
