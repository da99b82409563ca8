// "Why?": the question's terms, and how the passages rank. What the reader saw of each is in /v1/explain, for programs.

import { count, foreign, make, percent, problemCard, quiet, section, table } from "/static/dom.js";
import { client } from "/static/client.js";
import { asTable, highlighted, markedWords } from "/static/passages.js";

/** A folded section that asks for the explanation once it is opened. */
export function why(answer) {
  const inside = make("div", {});
  const fold = make("details", { class: "how why", toggle: open }, make("summary", {}, "Why?"), inside);
  let asked = false;
  async function open() {
    if (!fold.open || asked) return;
    asked = true;
    inside.replaceChildren(make("p", { class: "quiet" }, "Looking at how it was found …"));
    try {
      const { question, corpus, filter } = answer;
      inside.replaceChildren(...parts(await client.explain(question, { corpus, filter })));
    } catch (problem) {
      asked = false;
      inside.replaceChildren(problemCard(problem));
    }
  }
  return fold;
}

const parts = (found) => [
  make("p", { class: "sentence" }, inShort(found)),
  make("details", { class: "more" }, make("summary", {}, "Details"), [
    section("The question’s words", termsTable(found)),
    section("How the passages rank", passageList(found)),
  ]),
];

/** One sentence: the words that found the passage, and how the next best compares. */
function inShort({ spans, passages, answer }) {
  const [best] = spans;
  const next = answer.n_best[1];
  const passage = passages.find((one) => one.key === best?.passage);
  if (!passage) return ["No passage was found."];
  const words = markedWords(passage);
  const by = words.length > 0 ? words.map((word, n) => [n ? ", " : "", make("em", {}, word)]) : "what it means";
  const near = () => ["the next best, ", make("em", {}, foreign(next.answer)), `, is near, at ${percent(next.score)}`];
  const far = !next || next.score < best.score / 3 ? "the next best is far behind" : near();
  return [answer.no_answer ? "The nearest passage was found by " : "Found by ", by, "; ", far, "."];
}

function termsTable(found) {
  const has = ({ df }) => `${count(df)} of ${count(found.size)}`;
  const rows = found.terms.map((one) => [make("code", {}, one.term), has(one), one.idf.toFixed(2)]);
  return table(["Word stem", "Passages with it", "Weight"], rows);
}

function passageList(found) {
  const items = found.passages.map((one, number) =>
    make(
      "li",
      {},
      make(
        "p",
        { class: "facts" },
        make("b", {}, foreign(one.title || one.document)),
        quiet(score(one)),
        make("span", { class: "chip" }, number < found.read ? "read" : "not read: it was sure before"),
      ),
      one.written ? asTable(one) : make("p", { class: "passage", dir: "auto" }, highlighted(one)),
    ),
  );
  return make("ol", { class: "ranks" }, items);
}

function score({ score: total, why: made }) {
  if (!made) return total.toFixed(1);
  return `${total.toFixed(1)}, ${(total - made.near).toFixed(1)} of it by words, ${made.near.toFixed(1)} by nearness`;
}
