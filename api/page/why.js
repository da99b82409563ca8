// "Why?": the question's terms, the ranks, and what its score is made of.

import { count, foreign, make, percent, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";
import { asTable, highlighted, markedWords } from "/static/passages.js";

const SIGNALS = [
  ["margin", "how far it lies above “the passage does not say”"],
  ["gap", "how far above the next answer with other words"],
  ["fall", "how far the best passage stands out"],
  ["rank", "how well its passage ranks"],
  ["lag", "how far its passage ranks behind the best"],
  ["evidence", "how much its sentence answers"],
  ["relevance", "how much its passage answers at all"],
  ["length", "how long the question is"],
];

/** A folded section that asks for the explanation once it is opened. */
export function why(answer) {
  const inside = make("div", {});
  const section = make("details", { class: "how why", toggle: open }, make("summary", {}, "Why?"), inside);
  let asked = false;
  async function open() {
    if (!section.open || asked) return;
    asked = true;
    inside.replaceChildren(make("p", { class: "quiet" }, "Looking at how it was found …"));
    try {
      inside.replaceChildren(...parts(await client.explain(answer.question, { corpus: answer.corpus, filter: answer.filter })));
    } catch (problem) {
      asked = false;
      inside.replaceChildren(problemCard(problem));
    }
  }
  return section;
}

const parts = (found) => [
  make("p", { class: "sentence" }, inShort(found)),
  make("details", { class: "more" }, make("summary", {}, "Details"), [
    part("The question’s words", termsTable(found)),
    part("How the passages rank", passageList(found)),
    part("What the reader saw", spansTable(found)),
    found.spans.length > 0 ? part("What the score is made of", oddsTable(found.spans[0])) : null,
  ].filter(Boolean)),
];

/** One sentence: the words that found the passage, and how the next best compares. */
function inShort({ spans, passages, answer }) {
  const [best] = spans;
  const next = answer.n_best[1];
  const passage = passages.find((one) => one.key === best?.passage);
  if (!passage) return ["No passage was found."];
  const words = markedWords(passage);
  const by = words.length > 0 ? words.map((word, n) => [n ? ", " : "", make("em", {}, word)]) : "what it means";
  const far = !next || next.score < best.score / 3 ? "the next best is far behind" : ["the next best, ", make("em", {}, foreign(next.answer)), `, is near, at ${percent(next.score)}`];
  return [answer.no_answer ? "The nearest passage was found by " : "Found by ", by, "; ", far, "."];
}

const part = (title, content) => make("section", { class: "section", "aria-label": title }, make("h2", {}, title), content);

function table(heads, rows) {
  const head = make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, cells.map((cell) => make("td", {}, cell))));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", {}, make("thead", {}, head), make("tbody", {}, body)));
}

function termsTable(found) {
  const rows = found.terms.map((one) => [make("code", {}, one.term), `${count(one.df)} of ${count(found.size)}`, one.idf.toFixed(2)]);
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
        make("span", { class: "quiet" }, score(one)),
        make("span", { class: "chip" }, number < found.read ? "read" : "not read: it was sure before"),
      ),
      one.written ? asTable(one) : make("p", { class: "passage", dir: "auto" }, highlighted(one)),
    ),
  );
  return make("ol", { class: "ranks" }, items);
}

function score({ score: total, why: made }) {
  return made ? `${total.toFixed(1)}, ${(total - made.near).toFixed(1)} of it by words, ${made.near.toFixed(1)} by nearness` : total.toFixed(1);
}

function spansTable(found) {
  const rows = found.spans.map((one) => [foreign(one.answer), one.span_logit.toFixed(2), one.null_logit.toFixed(2), one.margin.toFixed(2), percent(one.score)]);
  return table(["Span", "Its logit", "“Does not say”", "Margin", "Score"], rows);
}

function oddsTable(best) {
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
  const rows = SIGNALS.filter(([name]) => name in best.log_odds).map(([name, what]) => [what, best[name].toFixed(2), signed(best.log_odds[name])]);
  return table(["Signal of the best span", "Value", "Adds to the log-odds"], [...rows, ["to begin with", "", signed(best.log_odds.bias)]]);
}
