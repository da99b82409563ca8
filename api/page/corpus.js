// One corpus: how much it holds, how far its vectors are, and its documents, to be found, opened and removed.

import { byId, count, foreign, make, percent, plural, problemCard, readingOf } from "/static/dom.js";
import { client } from "/static/client.js";
import { removeSoon } from "/static/undo.js";

const OFTEN = 1000; // ms between two looks, while files are being read
const EVERY = 3000; // ms between two looks, while vectors are being made
const SHOWN = 200; // rows at first, and by each press more
const CHIPS = 12; // other corpora that are offered
const MOST = 10_000; // documents that are fetched to be sorted; of more, the first
const ORDERS = {
  title: (one, other) => nameOf(one).localeCompare(nameOf(other)),
  passages: (one, other) => other.passages - one.passages,
  bytes: (one, other) => other.bytes - one.bytes,
};

const name = decodeURIComponent(location.pathname.slice("/corpus/".length));
let documents = [];
let shown = SHOWN;

const nameOf = ({ title, id }) => title || id;

async function load() {
  byId("name").replaceChildren(foreign(name));
  document.title = `${name} · shardqa`;
  byId("said").textContent = "Looking at its documents …";
  byId("ask").href = `/?${new URLSearchParams({ corpus: name })}`;
  try {
    await look();
    documents = [];
    for await (const one of client.documents({ corpus: name, page: 1000 })) if (documents.push(one) >= MOST) break;
    byId("choose").hidden = false;
    show();
  } catch (problem) {
    byId("said").textContent = problem.status === 404 ? "This corpus has no documents yet." : "";
    byId("documents").replaceChildren(problem.status === 404 ? empty() : problemCard(problem, load));
  }
  byId("documents").setAttribute("aria-busy", "false");
  watchTasks().catch(() => {}); // for those alone who may add
  showAsked().catch(() => {}); // for those alone who may see it, where the server notes it
}

/** What can be done where nothing is: begin it, or go to one that is there. */
function empty() {
  const others = make("ul", { class: "chips", "aria-label": "Other corpora" }, make("li", { class: "quiet", "aria-hidden": "true" }, "or look at"));
  const chip = ({ name: other }) => make("li", {}, make("a", { href: `/corpus/${other}` }, other));
  client.corpora().then(({ corpora }) => others.append(...corpora.slice(0, CHIPS).map(chip))).catch(() => {}); // a help that is not there harms nobody
  return make("div", { class: "empty" }, make("p", {}, make("a", { class: "first", href: `/?${new URLSearchParams({ corpus: name })}` }, "Add its first text")), others);
}

/** What was asked of the corpus; first what it did not answer, since there a page is missing. */
async function showAsked() {
  if (!(await client.corpora()).questions) return;
  const { questions } = await client.call("GET", `/v1/corpora/${encodeURIComponent(name)}/questions`);
  byId("asked").hidden = questions.length === 0;
  const head = make("tr", {}, make("th", { scope: "col" }, "Question"), make("th", { scope: "col", class: "number" }, "Times"), make("th", { scope: "col" }, "Outcome"));
  const rows = questions.slice(0, SHOWN).map((one) =>
    make(
      "tr",
      {},
      make("td", {}, make("a", { href: `/?${new URLSearchParams({ corpus: name, q: one.question })}` }, foreign(one.question))),
      make("td", { class: "number" }, count(one.times)),
      make("td", { class: one.refused ? "refused" : null }, one.refused ? "no sure answer" : percent(one.score)),
    ),
  );
  byId("asked").querySelector(".scroll").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

/** The files that are being read into the corpus, until none is; what they brought is listed then. */
async function watchTasks() {
  const tasks = await client.tasks({ corpus: name });
  const before = byId("tasks").children.length;
  byId("tasks").replaceChildren(...tasks.map(taskRow));
  if (tasks.length > 0) setTimeout(() => watchTasks().catch(() => {}), OFTEN);
  else if (before > 0) await load();
}

function taskRow(task) {
  const share = task.texts > 0 ? task.stored / task.texts : null;
  const of = task.total > 1 ? ` (${plural(task.total, "file", "files")} in all)` : "";
  const cancel = () => client.cancel(task.id).catch(() => {}); // the next look tells
  return make(
    "li",
    {},
    make("span", {}, "Reading ", foreign(task.file ?? "files"), of),
    make("progress", { max: 1, value: share, "aria-label": `${task.file}, stored` }),
    make("span", { class: "quiet" }, task.stage === "cancelling" ? "cancelling …" : readingOf(task)),
    task.stage === "cancelling" ? null : make("button", { type: "button", class: "plain", click: cancel, "aria-label": `Cancel ${task.file}` }, "Cancel"),
  );
}

/** The sizes; again after a while, where passages still lack vectors. */
async function look() {
  const { corpus, dropping, partial, failed } = await client.corpus(name);
  byId("said").textContent = [
    corpus ? `${plural(corpus.documents, "document", "documents")}, ${plural(corpus.passages, "passage", "passages")}, ${size(corpus.bytes)}` : `being deleted: ${count(dropping.removed)} of ${plural(dropping.documents, "document", "documents")} are gone`,
    partial ? `without the documents of ${failed.join(", ")}, which did not answer` : "",
    corpus && isBehind(corpus) ? `${percent(corpus.encoded / corpus.passages)} can be found in other words, too` : "",
  ].filter(Boolean).join("; ");
  byId("vectors").hidden = !corpus || !isBehind(corpus);
  if (!corpus || !isBehind(corpus)) return;
  byId("vectors").value = corpus.encoded / corpus.passages;
  setTimeout(() => look().catch(() => {}), EVERY); // the page stands as it was, where one look fails
}

const isBehind = ({ encoded, passages }) => encoded !== null && encoded < passages;

const size = (bytes) => (bytes < 1e6 ? `${count(Math.ceil(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

function show() {
  const wanted = byId("find").value.trim().toLowerCase();
  const fit = documents.filter((one) => `${one.title}\n${one.id}`.toLowerCase().includes(wanted)).sort(ORDERS[byId("sort").value]);
  const heads = make("tr", {}, ["Document", "Passages", "Text", ""].map((text) => make("th", { scope: "col", class: text === "Passages" || text === "Text" ? "number" : null }, text || make("span", { class: "hidden" }, "Remove"))));
  byId("documents").replaceChildren(fit.length > 0 ? make("table", {}, make("thead", {}, heads), make("tbody", {}, fit.slice(0, shown).map(row))) : make("p", { class: "quiet" }, wanted ? "No document has that in its title or name." : "No document is left."));
  const more = make("button", { type: "button", class: "plain", click: () => ((shown += SHOWN), show()) }, "Show more");
  byId("rest").hidden = fit.length <= shown && documents.length < MOST;
  byId("rest").replaceChildren(`${count(Math.min(shown, fit.length))} of ${count(fit.length)}${documents.length < MOST ? "" : `, of the first ${count(MOST)} of the corpus`} `, fit.length > shown ? more : "");
}

function row(one) {
  const address = `/document?${new URLSearchParams({ corpus: name, id: one.id })}`;
  const below = one.title && one.title !== one.id ? make("small", {}, foreign(one.id)) : null;
  return make(
    "tr",
    {},
    make("td", {}, make("a", { href: address }, foreign(nameOf(one))), below),
    make("td", { class: "number" }, count(one.passages)),
    make("td", { class: "number" }, size(one.bytes)),
    make("td", {}, remover(one)),
  );
}

function remover(one) {
  return make("button", { type: "button", class: "plain lesser", click, "aria-label": `Remove ${nameOf(one)}` }, "Remove");
  function click() {
    documents = documents.filter((other) => other !== one);
    show();
    byId("find").focus();
    removeSoon(nameOf(one), remove, back);
  }
  async function remove() {
    try {
      await client.delete(one.id, { corpus: name });
      await look();
    } catch (problem) {
      back();
      byId("said").textContent = problem.message;
    }
  }
  function back() {
    documents.push(one);
    show();
  }
}

byId("find").addEventListener("input", show);
byId("sort").addEventListener("change", show);
byId("choose").addEventListener("submit", (event) => event.preventDefault());
load();
