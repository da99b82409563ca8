// Passages of a question, best first, its words marked: a view beside the answer, and what is left without one.

import { foreign, make, plain, plural, quiet } from "/static/dom.js";
import { nodesOf } from "/static/blocks.js";
import { placeOf } from "/static/actions.js";
import { client } from "/static/client.js";
import { sentencesAround, split, utf16Index } from "/static/text.js";

const FOUND = 100; // passages that are looked through
const SHOWN = 10; // at first, and by each press more
const WORDLESS = "No passage has words of this question; these mean most nearly what it asks";
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
  const select = (name, of) => chooser(name, of, passages, () => show(SHOWN));
  const choices = FACETS.map(([name, of]) => ({ name, of, select: select(name, of) })).filter((one) => one.select);
  let shown = 0;
  function show(count) {
    const fit = passages.filter((one) => choices.every(({ of, select }) => !select.value || of(one) === select.value));
    shown = count;
    list.replaceChildren(...fit.slice(0, count).map((one) => item(one, found)));
    counted.textContent = isWordless ? WORDLESS : plural(fit.length, "passage");
    more.hidden = fit.length <= count;
  }
  show(SHOWN);
  const facets = choices.map(({ name, select }) => make("label", {}, quiet(name), select));
  const head = make("div", { class: "facets" }, counted, facets);
  return [make("section", { class: "section", "aria-label": "Passages" }, head, list, more)];
}

/** Those that have words of the question which no better one shows, or mean nearly what it asks; passages overlap. */
function distinct(passages) {
  const shown = [];
  const isOf = (one, other) => one.corpus === other.corpus && one.document === other.document;
  const isShown = (passage) => (mark) =>
    shown.some((one) => isOf(one, passage) && one.start <= mark.start && mark.end <= one.end);
  for (const one of passages) {
    const isNear = one.highlights.length === 0 && one.score > passages[0].score / 2;
    const opening = one.highlights.find((mark) => !isShown(one)(mark));
    if (isNear || opening) shown.push({ ...one, opening });
  }
  return shown;
}

/** A choice among the values of a facet; null where there are not two. */
function chooser(name, of, passages, change) {
  const counts = new Map();
  for (const one of passages) counts.set(of(one), (counts.get(of(one)) ?? 0) + 1);
  const values = [...counts].filter(([value]) => value).sort((one, other) => other[1] - one[1]);
  if (counts.size < 2 || values.length === 0) return null;
  const options = values.map(([value, count]) => make("option", { value }, `${value} (${count})`));
  return make("select", { change }, make("option", { value: "" }, "all"), options);
}

/** The few passages that have words of a question which is not answered; empty where none has. */
export function passagesLeft(answer) {
  const section = make("section", { class: "section", "aria-label": "Passages", hidden: true });
  client
    .search(answer.question, { corpus: answer.corpus, filter: answer.filter, limit: SHOWN })
    .then((found) => {
      const fit = distinct(found.passages).filter((one) => one.highlights.length > 0).slice(0, LEFT);
      section.hidden = fit.length === 0;
      const name = `Passages with ${answer.absent.length > 0 ? "other " : ""}words of the question`;
      section.append(make("h2", {}, name), make("ol", { class: "found" }, fit.map((one) => item(one, found))));
    })
    .catch(() => {}); // a help that is not there harms nobody
  return section;
}

function item(one, { question, corpus }) {
  const { start, end, document: id } = one;
  const query = new URLSearchParams({ corpus: one.corpus, id, start, end, q: question, asked: corpus });
  const link = make("a", { class: "doc", href: `/document?${query}` }, foreign(one.title || id));
  const where = corpus.includes(",") ? quiet(`in ${one.corpus}`) : null;
  return make(
    "li",
    {},
    make("p", { class: "facts" }, link, where, placeOf(one.place, one.title)),
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
  const words = highlighted(passage).filter((piece) => piece instanceof Element).map((mark) => mark.textContent);
  const isFirst = (word, n) => words.findIndex((other) => other.toLowerCase() === word.toLowerCase()) === n;
  return words.filter(isFirst);
}
