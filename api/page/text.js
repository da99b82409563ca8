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
