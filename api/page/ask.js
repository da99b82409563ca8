// The ask page: the form, the address bar, and what is shown meanwhile. A new question aborts the last one.

import { takeFeedback } from "/static/actions.js";
import { answerParts, spoken } from "/static/answer.js";
import { choose, chosenCorpora, fillChoice, installChoice } from "/static/choice.js";
import { installCorpora, showCards } from "/static/corpora.js";
import { byId, foreign, make, plain, plural, problemCard, quiet } from "/static/dom.js";
import { client } from "/static/client.js";
import { installCombobox } from "/static/combobox.js";
import { forgetRecent, lastCorpus, recent, remember as rememberQuestion, rememberCorpus } from "/static/storage.js";
import { filterOf, offerParts, part } from "/static/facets.js";
import { goesOn } from "/static/followup.js";
import { passagesView } from "/static/passages.js";
import { kept, showEnd, step } from "/static/present.js";
import { installOwnText } from "/static/own.js";

const SUGGESTING = 4; // corpora whose headings are suggested at once
const TRIED = 3; // headings that are offered as topics
const TOPIC = /^\p{Lu}[\p{L}\p{N} ’',-]{2,46}[\p{L}?]$/u; // reads like a heading, not like a number or a name of a file
const OWN = "mine"; // takes the visitor's texts where no corpus of theirs is chosen
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
let last = null; // {title, corpus} of the last answer
let corpora = [];
let silent = []; // nodes that did not answer: counts are without their documents
let suggestions = []; // titles and headings of the corpora that are chosen
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
  silent = known.failed;
  const listed = corpora.map((one) => one.name);
  const own = listed.filter((name) => !(name in EXAMPLES)); // the example never goes before these
  const size = (name) => corpora.find((one) => one.name === name).documents;
  const preferred = (own.length > 0 ? own : listed).toSorted((one, other) => size(other) - size(one));
  const last = lastCorpus();
  const isThere = last !== undefined && last.split(",").every((name) => name === "*" || listed.includes(name));
  const first = preferred.includes(known.default) ? known.default : (preferred[0] ?? known.default);
  const chosen = wanted || (isThere ? last : first);
  fillChoice(listed, chosen);
  showCorpus(false);
}

/** `isChoice`: the visitor has just chosen it, so texts go there, too, whatever was typed before. */
function showCorpus(isChoice) {
  const chosen = chosenCorpora();
  const found = corpora.filter((known) => chosen.includes(known.name));
  const sum = (field) => found.reduce((total, one) => total + one[field], 0);
  const sizes = `${plural(sum("documents"), "document")}, ${plural(sum("passages"), "passage")}`;
  byId("size").textContent = found.length > 0 ? sizes : "no documents yet: add a text below";
  const names = silent.join(" and ");
  byId("silent").hidden = silent.length === 0;
  const verb = silent.length > 1 ? "do" : "does";
  byId("silent").textContent = `${names} ${verb} not answer: all counts are without the documents there.`;
  showExamples("Try", (found.length === 1 && EXAMPLES[found[0].name]) || []);
  if (found.length === 0) byId("own").open = true;
  const into = chosen.length === 1 && !(chosen[0] in EXAMPLES) ? chosen[0] : OWN;
  const isUntouched = byId("into").value === OWN && document.activeElement !== byId("into");
  if (isChoice || isUntouched) byId("into").value = into;
  showCards(corpora, chosen);
  showRecent();
  suggest(chosen);
  const address = new URLSearchParams(location.search);
  offerParts(chosen, (!isChoice && address.get("corpus") === corpus.value && address.get("part")) || "");
}

/** Questions are asked; of a topic, which is none, the passages are shown. */
function showExamples(name, examples) {
  const list = byId("examples");
  list.hidden = examples.length === 0;
  list.setAttribute("aria-label", name);
  const view = (text) => (text.endsWith("?") ? "answer" : "passages");
  const button = (text) => make("button", { type: "button", click: () => ask(text, { view: view(text) }) }, text);
  const items = examples.map((text) => make("li", {}, button(text)));
  list.replaceChildren(make("li", { class: "quiet", "aria-hidden": "true" }, name), ...items);
}

/** Three headings that read like topics, spread over all that are known: the last ones, of the fewest titles. */
function topicsOf(known) {
  const topics = [...new Set(known.filter((text) => TOPIC.test(text)))];
  return topics.filter((_, n) => topics.length <= TRIED || n % Math.floor(topics.length / TRIED) === 0).slice(-TRIED);
}

function again({ question: text, corpus: name }) {
  choose(name);
  showCorpus(true);
  ask(text);
}

/** What was asked before in this browser, of any corpus. */
function showRecent() {
  const asked = recent();
  const where = (one) => quiet(` in ${one.corpus.replaceAll(",", ", ")}`);
  byId("recent").hidden = asked.length === 0;
  byId("recent")
    .querySelector("ul")
    .replaceChildren(...asked.map((one) => make("li", {}, plain(one.question, () => again(one)), where(one))));
}

/** Titles and headings of the corpora complete what is typed; some are topics where no questions are written. */
async function suggest(names) {
  const chosen = corpus.value;
  try {
    const known = (name) => client.call("GET", `/v1/corpora/${encodeURIComponent(name)}/suggestions`);
    const found = await Promise.all(names.slice(0, SUGGESTING).map(known));
    if (corpus.value !== chosen) return;
    suggestions = found.flatMap((one) => one.suggestions);
    if (byId("examples").hidden) showExamples("Topics", topicsOf(suggestions));
  } catch {
    suggestions = []; // a help that is not there harms nobody
  }
}

/** `within` is the title of the documents that are asked; without it, all are. */
async function ask(text, { fresh = false, remember = true, view = "answer", within = null } = {}) {
  question.value = text;
  if (!text.trim()) {
    question.focus();
    return;
  }
  asking?.abort();
  const mine = (asking = new AbortController());
  await loaded;
  if (mine.signal.aborted) return;
  if (remember) history.pushState(null, "", addressOf(text, view, within));
  showViews(text, view, within);
  document.title = `${text} · shardqa`;
  document.body.classList.add("asked");
  wait();
  try {
    if (view === "passages") {
      const where = { corpus: corpus.value || null, filter: filterNow(within) };
      const parts = await passagesView(text, { ...where, signal: mine.signal });
      show(parts, parts[0].querySelector("h2").textContent);
      return;
    }
    const filter = filterNow(within);
    const options = { corpus: corpus.value || null, n_best: N_BEST, fresh, filter, step, signal: mine.signal };
    const answer = await client.ask(text, options);
    const parts = answerParts({ ...answer, filter }, () => ask(text, { fresh: true, remember: false, within }));
    show(within === null ? parts : [narrowed(text, within), ...parts], spoken(answer));
    showEnd(answer);
    if (!answer.no_answer) last = { title: answer.title, corpus: corpus.value };
    byId("model").textContent = answer.pinned ? "" : answer.model;
    rememberQuestion(text, answer.corpus);
    rememberCorpus(corpus.value);
    showRecent();
  } catch (problem) {
    if (problem.name === "AbortError") return;
    show([problemCard(problem, () => ask(text, { remember: false, view, within }))], problem.title);
  }
}

/** The documents that are asked now: those of the part that is chosen, and of them those of a title. */
function filterNow(title) {
  const filter = { ...filterOf(part()), ...(title === null ? {} : { title }) };
  return Object.keys(filter).length > 0 ? filter : undefined;
}

function addressOf(text, view, within) {
  const choices = { view: view === "answer" ? "" : view, within: within ?? "", part: part() };
  const told = Object.entries(choices).filter(([, value]) => value);
  return `/?${new URLSearchParams([["q", text], ["corpus", corpus.value], ...told, ...kept])}`;
}

/** Says which document alone was asked, and asks all on a press. */
function narrowed(text, title) {
  const all = plain("Ask all documents", () => ask(text));
  const about = ["This goes on from your last question, so only ", make("b", {}, foreign(title)), " was asked. "];
  return make("p", { class: "note", role: "note" }, about, all);
}

/** The two views of a question: what it is answered by, and the passages that have its words. */
function showViews(text, current, within) {
  const views = [["answer", "Answer"], ["passages", "Passages"]].map(([view, name]) => {
    const click = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // into a tab of its own, as links go
      event.preventDefault();
      ask(text, { view, within });
    };
    const look = { href: addressOf(text, view, within), "aria-current": view === current ? "page" : null };
    return make("a", { ...look, click }, name);
  });
  byId("views").replaceChildren(...views);
}

function wait() {
  result.setAttribute("aria-busy", "true");
  if (!result.hasChildNodes()) result.append(make("div", { class: "waiting", "aria-hidden": "true" }, make("i")));
  byId("status").textContent = "Looking for the answer …";
}

function show(parts, sentence) {
  result.setAttribute("aria-busy", "false");
  const hidden = question.scrollWidth <= question.clientWidth;
  const asked = make("p", { class: "asked-question", "aria-hidden": "true", hidden }, question.value);
  result.replaceChildren(asked, ...parts);
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
    await ask(text, { remember: false, view: address.get("view") ?? undefined, within: address.get("within") });
  } else if (!result.querySelector(".problem")) {
    result.replaceChildren();
    document.body.classList.remove("asked");
    document.title = "shardqa: ask your documents";
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const follows = last?.corpus === corpus.value && last.title && goesOn(question.value);
  ask(question.value, { within: follows ? last.title : null });
});
installChoice(() => showCorpus(true));
byId("part").addEventListener("change", () => {
  if (document.body.classList.contains("asked")) ask(question.value);
});
installCombobox(question, byId("suggestions"), {
  asked: () => recent().map((one) => one.question),
  titles: () => suggestions,
  again: (text) => again(recent().find((one) => one.question === text)),
});
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
  byId("into").value = OWN;
  await loadCorpora(name);
  document.body.classList.remove("asked");
  result.replaceChildren();
}

installCorpora({
  chosen: async (name) => {
    await freshCorpus(name);
    question.focus();
  },
  dropped: (name) => (chosenCorpora().includes(name) ? freshCorpus(null) : loadCorpora(corpus.value)),
});
installOwnText(async (name) => {
  if (name === corpus.value && result.hasChildNodes()) return loadCorpora(name); // the answer stays
  await freshCorpus(name);
  question.focus();
});
start();
