// A question that goes on from the one before, told by its words: such a one is asked of the document that answered.

const POINTING = new Set("he him she it they them".split(" "));
const POSSESSIVE = new Set("his her its their".split(" "));
const NEAR = 8; // words, within which "its" is hardly of something that the question itself names
const HOLLOW = new Set(
  (
    "a about an and are be but can did do does for from had has have how in is long many may much must of often on " +
    "or so the then to was were what when where which who whom whose why will with"
  ).split(" "),
);

/** Whether a question leaves unsaid what it is about. */
export function goesOn(question) {
  const written = question.match(/[\p{L}\p{N}’'-]+/gu) ?? [];
  if (written.some((word, n) => n > 0 && /^\p{Lu}/u.test(word))) return false; // a name says it
  const words = written.map((word) => word.toLowerCase());
  const isPointing = (word, n) => POINTING.has(word) || (n < NEAR && POSSESSIVE.has(word));
  const asIf = /^(and|but|also|what about|how about)\s|(?<!\b(is|are|was|were)\s)\bthere\b|\bone\s*\?*$/i;
  return words.some(isPointing) || asIf.test(question.trim()) || words.every((word) => HOLLOW.has(word));
}
