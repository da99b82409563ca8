// One corpus: how much it holds, how far its vectors are, and its documents, to be found, opened and removed.

import { byId, count, foreign, make, percent, plain, plural, problemCard, quiet } from "/static/dom.js";
import { readingOf, shareOf, size, table } from "/static/dom.js";
import { client } from "/static/client.js";
import { removeSoon } from "/static/undo.js";
import { BY_OCR, leftOut, upload } from "/static/upload.js";

const OFTEN = 1000; // ms between two looks, while files are being read
const EVERY = 3000; // ms between two looks, while vectors are being made
const SHOWN = 200; // rows at first, and by each press more
const CHIPS = 12; // other corpora that are offered
const AT_ONCE = 8; // removals under way
const MOST = 10_000; // documents that are fetched to be sorted; of more, the first
const ORDERS = {
  title: (one, other) => nameOf(one).localeCompare(nameOf(other), undefined, { numeric: true }),
  passages: (one, other) => other.passages - one.passages,
  bytes: (one, other) => other.bytes - one.bytes,
};

const name = decodeURIComponent(location.pathname.slice("/corpus/".length));
let documents = [];
let shown = SHOWN;
let watched = null; // the timer of the next look at the tasks
const ticked = new Set(); // documents
const open = new Set(); // files whose documents are shown

const nameOf = ({ title, id }) => title || id;

async function load() {
  byId("name").replaceChildren(foreign(name));
  document.title = `${name} · shardqa`;
  byId("said").textContent = "Looking at its documents …";
  byId("ask").href = `/?${new URLSearchParams({ corpus: name })}`;
  try {
    await look();
    const found = [];
    for await (const one of client.documents({ corpus: name, page: 1000 })) if (found.push(one) >= MOST) break;
    documents = found;
    ticked.clear();
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
  const first = make("li", { class: "quiet", "aria-hidden": "true" }, "or look at");
  const others = make("ul", { class: "chips", "aria-label": "Other corpora" }, first);
  const chip = ({ name: other }) => make("li", {}, make("a", { href: `/corpus/${other}` }, other));
  const show = ({ corpora }) => others.append(...corpora.slice(0, CHIPS).map(chip));
  client.corpora().then(show).catch(() => {}); // a help that is not there harms nobody
  const add = make("a", { class: "first", href: byId("ask").href }, "Add its first text");
  return make("div", { class: "empty" }, make("p", {}, add), others);
}

/** What was asked of the corpus; first what it did not answer, since there a page is missing. */
async function showAsked() {
  if (!(await client.corpora()).questions) return;
  const { questions } = await client.call("GET", `/v1/corpora/${encodeURIComponent(name)}/questions`);
  byId("asked").hidden = questions.length === 0;
  const rows = questions.slice(0, SHOWN).map((one) => [
    make("a", { href: `/?${new URLSearchParams({ corpus: name, q: one.question })}` }, foreign(one.question)),
    count(one.times),
    make("span", { class: one.refused ? "refused" : null }, one.refused ? "no sure answer" : percent(one.score)),
  ]);
  byId("asked").querySelector(".scroll").replaceWith(table(["Question", "Times", "Outcome"], rows));
}

/** The files that are being read into the corpus, until none is; what they brought is listed then. */
async function watchTasks() {
  const tasks = await client.tasks({ corpus: name });
  const before = byId("tasks").children.length;
  byId("tasks").replaceChildren(...tasks.map(taskRow));
  clearTimeout(watched);
  if (tasks.length > 0) watched = setTimeout(() => watchTasks().catch(() => {}), OFTEN);
  else if (before > 0) await load();
}

function taskRow(task) {
  const of = task.total > 1 ? ` (${plural(task.total, "file")} in all)` : "";
  const cancel = () => client.cancel(task.id).catch(() => {}); // the next look tells
  return make(
    "li",
    {},
    make("span", {}, "Reading ", foreign(task.file ?? "files"), of),
    make("progress", { max: 1, value: shareOf(task), "aria-label": `${task.file}, stored` }),
    quiet(task.stage === "cancelling" ? "cancelling …" : readingOf(task)),
    task.stage === "cancelling" ? null : plain("Cancel", cancel, { "aria-label": `Cancel ${task.file}` }),
  );
}

/** The sizes; again after a while, where passages still lack vectors. */
async function look() {
  const { corpus, dropping, partial, failed } = await client.corpus(name);
  const whole = plural((corpus ?? dropping).documents, "document");
  byId("said").textContent = [
    corpus
      ? `${whole}, ${plural(corpus.passages, "passage")}, ${size(corpus.bytes)}`
      : `being deleted: ${count(dropping.removed)} of ${whole} are gone`,
    partial ? `without the documents of ${failed.join(", ")}, which did not answer` : "",
    corpus && isBehind(corpus) ? `${percent(corpus.encoded / corpus.passages)} can be found in other words, too` : "",
  ].filter(Boolean).join("; ");
  byId("vectors").hidden = !corpus || !isBehind(corpus);
  if (!corpus || !isBehind(corpus)) return;
  byId("vectors").value = corpus.encoded / corpus.passages;
  setTimeout(() => look().catch(() => {}), EVERY); // the page stands as it was, where one look fails
}

const isBehind = ({ encoded, passages }) => encoded !== null && encoded < passages;

const HEADS = [["Document", null], ["Kind", null], ["Passages", "number"], ["Text", "number"]];

/** Documents of one file stand as a row that opens; others by themselves. */
function foldedRows(list) {
  const files = Map.groupBy(list, (one) => one.origin || one.id);
  return [...files.values()].map((of) => (of.length > 1 ? ofFile(of) : { ...of[0], of }));
}

/** A file as a document of the sizes of its documents. */
function ofFile(of) {
  const file = of[0].origin.split("/").at(-1).replace(/^upload:/, "");
  const sum = (field) => of.reduce((total, one) => total + one[field], 0);
  return { id: of[0].origin, title: file, passages: sum("passages"), bytes: sum("bytes"), of: of.sort(ORDERS.title) };
}

const kindOf = ({ id, of }) => ((of[0].origin || id).match(/\.([a-z0-9]{1,5})$/i)?.[1] ?? "text").toUpperCase();

function show() {
  const wanted = byId("find").value.trim().toLowerCase();
  const fit = documents.filter((one) => `${one.title}\n${one.id}`.toLowerCase().includes(wanted));
  const rows = foldedRows(fit).sort(ORDERS[byId("sort").value]);
  const change = () => tick(all.checked ? fit : []);
  const all = make("input", { type: "checkbox", "aria-label": "Select all", change });
  all.checked = fit.length > 0 && fit.every((one) => ticked.has(one));
  const heads = HEADS.map(([text, look]) => make("th", { scope: "col", class: look }, text));
  const last = make("th", { scope: "col" }, make("span", { class: "hidden" }, "Remove"));
  const head = make("tr", {}, make("th", { scope: "col" }, all), heads, last);
  const body = () => make("tbody", {}, rows.slice(0, shown).flatMap(rowsOf));
  const listed = () => make("table", {}, make("thead", {}, head), body());
  const none = wanted ? "No document has that in its title or name." : "No document is left.";
  byId("documents").replaceChildren(fit.length > 0 ? listed() : make("p", { class: "quiet" }, none));
  const more = plain("Show more", () => ((shown += SHOWN), show()));
  byId("rest").hidden = rows.length <= shown && documents.length < MOST;
  const bound = documents.length < MOST ? "" : `, of the first ${count(MOST)} documents of the corpus`;
  const part = `${count(Math.min(shown, rows.length))} of ${count(rows.length)}${bound} `;
  byId("rest").replaceChildren(part, rows.length > shown ? more : "");
  byId("remove").hidden = ticked.size === 0;
  byId("remove").textContent = `Remove ${plural(ticked.size, "document")}`;
}

/** A row, and where its file is open a row for each of its documents. */
function rowsOf(one) {
  const isFile = one.of.length > 1;
  const isOpen = isFile && open.has(one.id);
  const toggle = () => {
    if (!open.delete(one.id)) open.add(one.id);
    show();
    byId("documents").querySelector(`[data-file="${CSS.escape(one.id)}"]`)?.focus();
  };
  const look = { "aria-expanded": String(isOpen), "data-file": one.id };
  const name = isFile ? plain([foreign(one.title), ` (${count(one.of.length)})`], toggle, look) : link(one);
  const inner = (document) => row({ ...document, of: [document] }, link(document), "inner");
  return [row(one, name), ...(isOpen ? one.of.slice(0, SHOWN).map(inner) : [])];
}

function link(one) {
  const below = one.title && one.title !== one.id ? make("small", {}, foreign(one.id)) : null;
  const href = `/document?${new URLSearchParams({ corpus: name, id: one.id })}`;
  return [make("a", { href }, foreign(nameOf(one))), below];
}

function row(one, inside, look = null) {
  const click = () => remove(one.of, nameOf(one));
  const change = () => tick(one.of, box.checked);
  const box = make("input", { type: "checkbox", "aria-label": `Select ${nameOf(one)}`, change });
  box.checked = one.of.every((document) => ticked.has(document));
  return make(
    "tr",
    { class: look },
    make("td", {}, box),
    make("td", {}, inside),
    make("td", {}, kindOf(one)),
    make("td", { class: "number" }, count(one.passages)),
    make("td", { class: "number" }, size(one.bytes)),
    make("td", {}, plain("Remove", click, { class: "plain lesser", "aria-label": `Remove ${nameOf(one)}` })),
  );
}

/** Ticks these documents, or no longer; without `is`, these alone. */
function tick(some, is) {
  if (is === undefined) ticked.clear();
  for (const one of some) is === false ? ticked.delete(one) : ticked.add(one);
  show();
}

/** Removes documents after the while in which that can be taken back. */
function remove(some, what) {
  const gone = new Set(some);
  documents = documents.filter((one) => !gone.has(one));
  for (const one of some) ticked.delete(one);
  show();
  byId("find").focus();
  removeSoon(what, removeNow, back);

  function back() {
    documents.push(...gone);
    show();
  }
  async function removeNow() {
    const left = [...some];
    const next = async () => {
      for (let one = left.pop(); one; one = left.pop()) {
        await client.delete(one.id, { corpus: name });
        gone.delete(one);
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, next));
      await look();
    } catch (problem) {
      back();
      byId("said").textContent = problem.message;
    }
  }
}

/** Files that are added here: the list of tasks shows how far each is. */
async function add(files, ocr = false) {
  const said = [];
  const step = () => watchTasks().catch(() => {});
  for (const file of files) {
    byId("said").textContent = `Sending ${file.name} …`;
    const read = () => add([file], true);
    const offer = (why) => (BY_OCR.test(why) && !ocr ? [" ", plain("Read by OCR", read)] : []);
    try {
      const { signal } = new AbortController(); // it is cancelled in the list of tasks
      const { results } = await upload(file, name, { sent: () => {}, step, signal, ocr });
      said.push(...results.flatMap(leftOut).map((why) => [`${why.replace(BY_OCR, "")}`, ...offer(why)]));
    } catch (problem) {
      said.push([`${file.name}: ${problem.message}`]);
    }
  }
  await load();
  byId("left").replaceChildren(...said.flatMap((one, n) => (n > 0 ? ["; ", ...one] : one)));
}

byId("find").value = new URLSearchParams(location.search).get("find") ?? "";
byId("find").addEventListener("input", show);
byId("sort").addEventListener("change", show);
byId("files").addEventListener("change", ({ target }) => {
  const files = [...target.files];
  target.value = ""; // the same file may be chosen again
  add(files);
});
byId("remove").addEventListener("click", () => remove([...ticked], plural(ticked.size, "document")));
byId("choose").addEventListener("submit", (event) => event.preventDefault());
load();
