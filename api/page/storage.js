// What this browser remembers: recent questions, and which answers were right, which a server may take as feedback.

const RECENT = "shardqa.recent";
const JUDGED = "shardqa.judged";
const CORPUS = "shardqa.corpus";
const MOST_RECENT = 12; // questions
const MOST_JUDGED = 1000; // answers

function read(key) {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return []; // nothing is kept for this site, or something else lies there
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // full, or not allowed: the page works without
  }
}

const same = (one, other) => one.question === other.question && one.corpus === other.corpus;

/** [{question, corpus}], last asked first. */
export const recent = () => read(RECENT);

export function remember(question, corpus) {
  const now = { question, corpus };
  write(RECENT, [now, ...recent().filter((one) => !same(one, now))].slice(0, MOST_RECENT));
}

/** The corpus that was asked last, or undefined. */
export const lastCorpus = () => read(CORPUS)[0];

export const rememberCorpus = (name) => write(CORPUS, [name]);

export const forgetRecent = () => write(RECENT, []);

/** [{question, corpus, document, answers}], as `shardqa-models eval` reads them. */
export const judged = () => read(JUDGED);

/** Keeps that an answer is right, or that the documents don't say; only what a questions.jsonl can hold. */
export function judge({ question, corpus, document, answers }) {
  const now = { question, corpus, document, answers };
  write(JUDGED, [...judged().filter((one) => !same(one, now)), now].slice(-MOST_JUDGED));
}

/** Takes a judgement back. */
export const unjudge = (question, corpus) => write(JUDGED, judged().filter((one) => !same(one, { question, corpus })));

/** The judged answers of a corpus as a file's text. */
export const questionsFile = (corpus) =>
  judged()
    .filter((one) => one.corpus === corpus)
    .map(({ question, document, answers }, number) => ({ id: `page-${number + 1}`, question, answers, document }))
    .map((line) => `${JSON.stringify({ ...line, document: line.document || null })}\n`)
    .join("");
