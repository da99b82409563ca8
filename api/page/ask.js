// The ask page: the form, the address bar, and what is shown meanwhile. One question at a time: a new one aborts the last.

import { takeFeedback } from "/static/actions.js";
import { answerParts, spoken } from "/static/answer.js";
import { installCorpora, showCards } from "/static/corpora.js";
import { byId, make, plural, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";
import { forgetRecent, recent, remember as rememberQuestion } from "/static/storage.js";
import { installOwnText } from "/static/own.js";

const N_BEST = 6; // candidates shown: the answer and five others

// Questions to try on the corpus that is shipped; the last one it does not answer.
const EXAMPLES = {
  seeds: [
    "Who designed UTF-8?",
    "Where did the organist hide the pipes in 1944?",
    "What do the bakers of the Moen Bakery call their sourdough starter?",
    "What is the capital of Mongolia?",
  ],
};

let asking = null; // AbortController of the question under way
let corpora = [];
let loads = 0; // how often the corpora were asked for: only the last reply counts
let loaded = Promise.resolve(); // done when the choice of corpora stands: a quick first question waits for it

const form = byId("ask");
const question = byId("question");
const corpus = byId("corpus");
const result = byId("result");

/** Reads the corpora into the choice; `wanted` is selected, a new name included. */
async function loadCorpora(wanted) {
  const mine = ++loads;
  let known;
  try {
    known = await client.corpora();
    takeFeedback(known.feedback);
    if (mine !== loads) return; // a later look, for another choice, is under way or done
  } catch (problem) {
    if (mine !== loads) return;
    if (wanted) corpus.replaceChildren(make("option", { value: wanted }, wanted));
    result.replaceChildren(problemCard(problem, () => start()));
    return;
  }
  corpora = known.corpora;
  const listed = corpora.map((one) => one.name);
  const own = listed.filter((name) => !(name in EXAMPLES)); // the example never goes before these
  const preferred = own.length > 0 ? own : listed;
  const chosen = wanted || (preferred.includes(known.default) ? known.default : (preferred[0] ?? known.default));
  const names = new Set([...listed, chosen]);
  corpus.replaceChildren(...[...names].map((name) => make("option", { value: name, selected: name === chosen }, name)));
  corpus.value = chosen;
  showCorpus();
}

function showCorpus() {
  const one = corpora.find((known) => known.name === corpus.value);
  byId("size").textContent = one
    ? `${plural(one.documents, "document", "documents")}, ${plural(one.passages, "passage", "passages")}`
    : "no documents yet: add a text below";
  const examples = (one && EXAMPLES[one.name]) || [];
  byId("examples").hidden = examples.length === 0;
  byId("examples").replaceChildren(...examples.map((text) => make("li", {}, make("button", { type: "button", click: () => ask(text) }, text))));
  if (corpora.length === 0) byId("own").open = true;
  showCards(corpora, corpus.value);
  showRecent();
  suggest(corpus.value);
}

/** What was asked before in this browser, of any corpus. */
function showRecent() {
  const asked = recent();
  byId("recent").hidden = asked.length === 0;
  const again = ({ question: text, corpus: name }) => () => {
    if ([...corpus.options].some((option) => option.value === name)) corpus.value = name;
    ask(text);
  };
  byId("recent")
    .querySelector("ul")
    .replaceChildren(...asked.map((one) => make("li", {}, make("button", { type: "button", class: "plain", click: again(one) }, one.question), make("span", { class: "quiet" }, ` in ${one.corpus}`))));
}

/** Titles and headings of the corpus complete what is typed. */
async function suggest(name) {
  try {
    const { suggestions } = await client.call("GET", `/v1/corpora/${encodeURIComponent(name)}/suggestions`);
    if (corpus.value === name) byId("suggestions").replaceChildren(...suggestions.map((text) => make("option", { value: text })));
  } catch {
    byId("suggestions").replaceChildren(); // a help that is not there harms nobody
  }
}

async function ask(text, { fresh = false, remember = true } = {}) {
  question.value = text;
  if (!text.trim()) {
    question.focus();
    return;
  }
  asking?.abort();
  const mine = (asking = new AbortController());
  await loaded;
  if (mine.signal.aborted) return;
  if (remember) history.pushState(null, "", `/?${new URLSearchParams({ q: text, corpus: corpus.value })}`);
  document.title = `${text} · shardqa`;
  document.body.classList.add("asked");
  wait();
  try {
    const options = { corpus: corpus.value || null, n_best: N_BEST, fresh, signal: mine.signal };
    const answer = await client.ask(text, options);
    show(answerParts(answer, () => ask(text, { fresh: true, remember: false })), spoken(answer));
    byId("model").textContent = answer.model;
    rememberQuestion(text, answer.corpus);
    showRecent();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    show([problemCard(problem, () => ask(text, { remember: false }))], problem.title);
  }
}

function wait() {
  result.setAttribute("aria-busy", "true");
  if (!result.hasChildNodes()) result.append(make("div", { class: "waiting", "aria-hidden": "true" }, make("i")));
  byId("status").textContent = "Looking for the answer …";
}

function show(parts, sentence) {
  result.setAttribute("aria-busy", "false");
  result.replaceChildren(...parts);
  byId("status").textContent = sentence;
}

/** What the address says: asks its question, or shows the empty page. */
async function start() {
  asking?.abort();
  const mine = (asking = new AbortController());
  const address = new URLSearchParams(location.search);
  loaded = loadCorpora(address.get("corpus"));
  await loaded;
  if (mine.signal.aborted) return; // the visitor was quicker, and asked
  const text = address.get("q");
  if (text) {
    await ask(text, { remember: false });
  } else if (!result.querySelector(".problem")) {
    result.replaceChildren();
    document.body.classList.remove("asked");
    document.title = "shardqa: ask your documents";
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask(question.value);
});
corpus.addEventListener("change", showCorpus);
addEventListener("popstate", () => {
  question.value = ""; // before the corpora are read again: what is typed meanwhile stays
  start();
});
addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    question.focus();
    question.select();
  }
});

byId("forget").addEventListener("click", () => {
  forgetRecent();
  showRecent();
});

/** Another corpus, or the same with other documents: nothing of the last question is shown any more. */
async function freshCorpus(name) {
  question.value = "";
  await loadCorpora(name);
  document.body.classList.remove("asked");
  result.replaceChildren();
}

installCorpora({
  chosen: async (name) => {
    await freshCorpus(name);
    question.focus();
  },
  dropped: () => freshCorpus(null),
});
installOwnText(async (name) => {
  await freshCorpus(name);
  question.focus();
});
start();
