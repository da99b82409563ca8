// Blocks of a document's text that are more than lines: headings, lists, and the rows of a table as a table.

import { make } from "/static/dom.js";
import { placeText } from "/static/place.js";
import { listsOf, utf16Index } from "/static/text.js";

/** [{first, last, made}] in order, indices of the string; `made(marks)` is the element, with the marks in it. */
export function blocks({ text, places = [] }) {
  const marks = placed(text, places);
  const rows = tables(text, marks);
  const items = lists(text).filter((list) => !rows.some((one) => one.first < list.last && list.first < one.last));
  return [...parts(marks), ...headings(text, marks), ...rows, ...items].sort((one, other) => one.first - other.first);
}

/** The index after the empty lines that follow a block: its own margin stands for them. */
const pastLines = (text, last) => last + text.slice(last).match(/^\n*/)[0].length;

/** The places with the indices at which each begins and ends. */
function placed(text, places) {
  let [character, index] = [0, 0];
  const marks = places.map(([start, place]) => {
    index = utf16Index(text, start - character, index);
    character = start;
    return { first: index, place };
  });
  return marks.map((mark, n) => ({ ...mark, last: marks[n + 1]?.first ?? text.length }));
}

/** A line of ours before what stands on another slide or sheet of the file. */
function parts(marks) {
  const nameOf = (mark) => (mark ? placeText({ slide: mark.place.slide, sheet: mark.place.sheet }) : "");
  const begins = marks.filter((mark, n) => nameOf(mark) && nameOf(mark) !== nameOf(marks[n - 1]));
  const made = (mark) => () => make("span", { class: "part quiet" }, nameOf(mark));
  return begins.map((mark) => ({ first: mark.first, last: mark.first, made: made(mark) }));
}

/** Lines that stand where a heading begins to be in force, and say it. */
function headings(text, marks) {
  const nameOf = (mark) => (mark?.place.headings ?? []).join("\n");
  return marks
    .filter((mark, n) => nameOf(mark) && nameOf(mark) !== nameOf(marks[n - 1]))
    .map(({ first, place }) => ({ first, words: place.headings.at(-1), level: Math.min(6, place.headings.length + 1) }))
    .filter(({ first, words }) => text.startsWith(words, first))
    .map(({ first, words, level }) => {
      const look = { class: `heading level-${level}`, role: "heading", "aria-level": level };
      const last = first + words.length;
      return { first, last, made: (within) => make("span", look, marked(text, first, last, within)) };
    });
}

function lists(text) {
  return listsOf(text).map((items) => {
    const first = text.lastIndexOf("\n", items[0].first) + 1;
    const item = (within) => (one) => make("li", { value: one.number }, marked(text, one.first, one.last, within));
    const made = (within) => make(items[0].number === null ? "ul" : "ol", {}, items.map(item(within)));
    return { first, last: pastLines(text, items.at(-1).last), made };
  });
}

/** A piece of the text, with what is marked of it. */
function marked(text, from, to, marks) {
  const pieces = [];
  let place = from;
  for (const mark of marks) {
    const [first, last] = [Math.max(mark.first, place), Math.min(mark.last, to)];
    if (first >= last) continue;
    pieces.push(text.slice(place, first), mark.made(first, last));
    place = last;
  }
  return [...pieces, text.slice(place, to)];
}

/** Rows side by side of the same columns, or of one named value each; their text is sentences that shardqa wrote. */
function tables(text, marks) {
  const namesOf = ({ place }) => (isPair({ place }) ? "" : place.cells.map(([name]) => name).join("\n"));
  const groups = [];
  for (const mark of marks) {
    const group = groups.at(-1);
    const goesOn = mark.place.cells && group && group.at(-1).last === mark.first;
    if (goesOn && namesOf(group[0]) === namesOf(mark)) group.push(mark);
    else if (mark.place.cells) groups.push([mark]);
  }
  return groups.map((rows) => {
    const last = rows[0].first + text.slice(rows[0].first, rows.at(-1).last).trimEnd().length;
    return { first: rows[0].first, last: pastLines(text, last), made: (within) => table(text, rows, within) };
  });
}

const isPair = ({ place }) => place.cells.length === 1;

/** Whether rows are names with a value each, not a table of one column. */
const arePairs = (rows) =>
  rows.every(isPair) && new Set(rows.map(({ place }) => place.cells[0][0])).size === rows.length;

/** The nodes of a text: its blocks made, and the rest as it is, with what is marked. */
export function nodesOf(found, marks) {
  const nodes = [];
  let place = 0;
  for (const { first, last, made } of blocks(found)) {
    const inside = marks.filter((mark) => mark.first < last && first < mark.last);
    nodes.push(marked(found.text, place, first, marks), made(inside));
    place = last;
  }
  return [...nodes, marked(found.text, place, found.text.length, marks)].flat();
}

function table(text, rows, marks) {
  const name = rows.length > 1 ? "scroll" : "scroll row-of-table"; // on a phone its cells stand below one another
  const scroll = (...parts) => {
    const whole = make("table", {}, parts);
    whole.style.setProperty("--cells", rows[0].place.cells.length);
    return make("div", { class: name, tabindex: "0", role: "region", "aria-label": "Table" }, whole);
  };
  const own = (row) => marks.filter((mark) => row.first <= mark.first && mark.first < row.last);
  const words = (row, { value, at }) => (at < 0 ? value : marked(text, at, at + value.length, own(row)));
  const values = (row) => cells(text, row).map((one) => make("td", { dir: "auto" }, words(row, one)));
  if (arePairs(rows)) {
    const pairs = rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.place.cells[0][0]), values(row)));
    return scroll(make("tbody", {}, pairs));
  }
  const head = make("tr", {}, rows[0].place.cells.map(([name]) => make("th", { scope: "col" }, name)));
  const body = rows.map((row) => make("tr", {}, values(row)));
  return scroll(make("thead", {}, head), make("tbody", {}, body));
}

/** The values of a row, each with the index at which the row's sentence has it, -1 where it has not. */
function cells(text, { first, place }) {
  let from = first;
  return place.cells.map(([name, value]) => {
    const at = text.indexOf(value, Math.max(from, text.indexOf(name, from) + name.length));
    if (at >= 0) from = at + value.length;
    return { value, at };
  });
}
