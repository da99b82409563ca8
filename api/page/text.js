// Offsets. The API counts characters as Python does (code points); JavaScript's strings count UTF-16 units,
// two for each character past U+FFFF.

/** The index in `text` of its code point number `points`, starting to count at `from` (an index). */
export function utf16Index(text, points, from = 0) {
  let index = from;
  for (let left = points; left > 0 && index < text.length; left--) {
    const unit = text.charCodeAt(index);
    const next = index + 1 < text.length ? text.charCodeAt(index + 1) : 0;
    const pair = unit >= 0xd800 && unit <= 0xdbff && next >= 0xdc00 && next <= 0xdfff;
    index += pair ? 2 : 1;
  }
  return index;
}

/** [before, inside, after] of the code points start to end. */
export function split(text, start, end) {
  const first = utf16Index(text, Math.max(0, start));
  const last = utf16Index(text, Math.max(0, end - Math.max(0, start)), first);
  return [text.slice(0, first), text.slice(first, last), text.slice(last)];
}

const ITEM = /^[ \t]*(?:[-*+•]|(\d{1,3})[.)])[ \t]+(?=\S)/;

/** The lists of a text, each as its items {number, first, last}: indices of their words; a number where it has one. */
export function listsOf(text) {
  const lists = [];
  let items = [];
  let place = 0;
  for (const line of text.split("\n")) {
    const mark = line.match(ITEM);
    const last = place + line.trimEnd().length;
    if (mark) {
      const number = mark[1] === undefined ? null : Number(mark[1]);
      if (items.length > 0 && (items[0].number === null) !== (number === null)) lists.push((items = []));
      if (items.length === 0) lists.push(items);
      items.push({ number, first: place + mark[0].length, last });
    } else if (/^[ \t]+\S/.test(line) && items.length > 0) items.at(-1).last = last;
    else if (line.trim()) items = [];
    place += line.length + 1;
  }
  return lists.filter((one) => one.length > 1);
}

/** [from, to] of the two sentences of a text around the characters first to last, as indices: theirs, and one more. */
export function sentencesAround(text, first, last) {
  if (!Intl.Segmenter) return [0, text.length];
  const every = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)];
  const of = (place) => Math.max(0, every.findLastIndex((one) => one.index <= place));
  let [from, to] = [of(first), of(Math.max(first, last - 1))];
  if (from === to && to + 1 < every.length) to += 1;
  else if (from === to && from > 0) from -= 1;
  return [every[from]?.index ?? 0, every[to + 1]?.index ?? text.length];
}
