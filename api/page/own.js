// A visitor's own texts: by paste, by file, by drop. Each can be taken back.

import { byId, count, foreign, make, percent, plain, plural, quiet, readingOf, shareOf } from "/static/dom.js";
import { client } from "/static/client.js";
import { Problem } from "/static/shardqa.js";
import { removeSoon } from "/static/undo.js";
import { BY_OCR, leftOut, upload } from "/static/upload.js";

const MAX_BYTES = 64 * 1024 * 1024; // of one file; the server's own bound
const LISTED = 20; // documents and reasons of one file that are listed
const ROWS = /\.(csv|tsv|jsonl)(\.gz)?$/i; // files whose texts are their rows
const TITLE = 70; // characters of a first line that serve as a title

/** `added(corpus)` is called when new texts can be asked. */
export function installOwnText(added) {
  const form = byId("add");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = byId("text").value;
    if (!text.trim()) return say("Paste a text first.", true);
    const title = byId("title").value.trim() || firstLine(text);
    if (await addText({ title, text }, added)) {
      byId("text").value = "";
      byId("title").value = "";
    }
  });
  byId("files").addEventListener("change", async (event) => {
    const files = [...event.target.files];
    event.target.value = ""; // the same file may be chosen again
    await takeFiles(files, added);
  });
  acceptKnown();
  installDrop((files) => takeFiles(files, added));
}

/** The file chooser offers what the server reads; without the list it offers all. */
async function acceptKnown() {
  try {
    const formats = await client.formats();
    byId("files").accept = [...formats.flatMap((one) => one.suffixes), ".gz"].join(",");
  } catch {
    byId("files").accept = "";
  }
}

function installDrop(dropped) {
  const veil = byId("drop");
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    veil.querySelector("p").textContent = `Drop the files into ${byId("into").value.trim()}`;
    veil.hidden = false;
  });
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    veil.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    byId("own").open = true;
    dropped([...event.dataTransfer.files]);
  });
}

/** Each file goes to the server as it is, which reads it; what is left out of one does not harm the others. */
async function takeFiles(files, added, corpus = byId("into").value.trim(), ocr = false) {
  const rows = files.map((file) => fileRow(file, ocr ? null : () => takeFiles([file], added, corpus, true)));
  let taken = 0;
  let passages = 0;
  for (const [number, file] of files.entries()) {
    if (rows[number].stop.signal.aborted) {
      rows[number].cancelled({ stored: 0 });
      continue;
    }
    say(`Adding ${file.name} …`);
    const outcome = await takeFile(file, corpus, rows[number], ocr);
    taken += outcome.documents;
    passages += outcome.passages;
  }
  if (taken > 0) await added(corpus);
  const refused = rows.filter((row) => row.classList.contains("bad")).length;
  const partly = rows.filter((row) => row.classList.contains("partly")).length;
  const what = taken === 1 && files.length === 1 ? files[0].name : plural(taken, "text");
  const done = taken > 0 ? `Added ${what}: ${plural(passages, "passage")}. Ask away.` : "";
  const left = partly > 0 ? `${plural(partly, "file has", "files have")} parts without text: the list says which.` : "";
  const none = refused > 0 ? `${plural(refused, "file was", "files were")} not taken: the list says why.` : "";
  say([done, left, none].filter(Boolean).join(" "), taken === 0 && refused > 0);
}

async function takeFile(file, corpus, row, ocr) {
  try {
    if (file.size > MAX_BYTES) throw new Error("it is larger than 64 MB; split it");
    const task = await upload(file, corpus, { sent: row.sent, step: row.step, signal: row.stop.signal, ocr });
    if (task.stage === "cancelled") return row.cancelled(task), { documents: 0, passages: 0 };
    const [{ outcome, problem }] = task.results;
    if (problem) throw new Problem(problem);
    const texts = outcome.documents.slice(0, LISTED).map((one) => addedRow(one, one.document));
    const passages = outcome.documents.reduce((sum, one) => sum + one.passages, 0);
    const left = leftOut({ outcome });
    const documents = outcome.documents.length;
    const shown = documents > 1 ? [folded(file, documents, texts)] : texts;
    row.ended(plural(passages, "passage"), left.slice(0, LISTED), shown);
    return { documents, passages };
  } catch (problem) {
    if (problem.code === "cancelled") row.cancelled({});
    else row.ended("not added", [problem.message], []);
    return { documents: 0, passages: 0 };
  }
}

/** The texts of a file in one line that opens: the first of them, and where the others are. */
function folded(file, documents, texts) {
  const name = ROWS.test(file.name) ? "rows" : "texts";
  const corpus = byId("into").value.trim();
  const left = documents - texts.length;
  const link = make("a", { href: `/corpus/${corpus}` }, corpus);
  const others = make("li", { hidden: left === 0 }, `and ${count(left)} more in `, link);
  const summary = make("summary", {}, foreign(file.name), ` in ${corpus}, ${plural(documents, name, name)}`);
  return make("li", {}, make("details", {}, summary, make("ul", {}, texts, others)));
}

/** A line of the list of files: name, how much is sent and stored, then its texts (one stands for the file), what is
 * left out, and a button to read that by OCR where it may help. */
function fileRow(file, readByOcr) {
  const bar = make("progress", { max: 1, value: 0, "aria-label": `${file.name}, sent and stored` });
  const outcome = make("span", { class: "quiet" });
  const reasons = make("ul", {});
  const name = make("span", {}, foreign(file.name));
  const cancel = plain("Cancel", stop, { "aria-label": `Cancel ${file.name}` });
  const row = make("li", {}, name, bar, outcome, cancel, reasons);
  row.stop = new AbortController();
  function stop() {
    cancel.remove();
    outcome.textContent = "cancelling …";
    row.stop.abort();
  }
  row.sent = (share) => {
    bar.value = share;
    outcome.textContent = share < 1 ? `sent ${percent(share)}` : "reading …";
  };
  row.step = (task) => {
    if (row.stop.signal.aborted) return;
    const share = shareOf(task);
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
    outcome.textContent = readingOf(task);
  };
  row.cancelled = ({ stored, texts }) => {
    const some = texts > 0 ? "cancelled; some of its texts may be there" : "cancelled";
    const many = `cancelled; at least ${count(stored)} of ${plural(texts, "text")} are there`;
    row.ended(stored > 0 ? many : some, [], []);
  };
  row.ended = (text, why, texts) => {
    bar.hidden = true;
    cancel.remove();
    outcome.textContent = text;
    const look = { "aria-label": `Read ${file.name} by OCR` };
    const recognize = () => (row.remove(), readByOcr());
    const offer = (reason) => (readByOcr && BY_OCR.test(reason) ? plain("Read by OCR", recognize, look) : null);
    const line = (reason) => make("li", {}, reason.replace(BY_OCR, ""), " ", offer(reason));
    reasons.replaceChildren(...texts, ...why.map(line));
    if (texts.length === 1) for (const part of [name, outcome]) part.hidden = true;
    row.classList.toggle("bad", texts.length === 0 && why.length > 0);
    row.classList.toggle("partly", texts.length > 0 && why.length > 0);
  };
  byId("files-taken").append(row);
  return row;
}

function firstLine(text) {
  const line = text.trim().split("\n", 1)[0].replace(/^#+\s*/, "");
  const points = [...line];
  return points.length <= TITLE ? line : `${points.slice(0, TITLE - 1).join("")}…`;
}

/** Adds a text; true when it was taken. */
async function addText(document, added) {
  const corpus = byId("into").value.trim();
  const button = byId("add").querySelector("button");
  button.disabled = true;
  try {
    say(`Adding ${document.title} …`);
    const ingested = await client.add({ ...document, corpus });
    byId("added").append(addedRow(ingested, document.title));
    await added(corpus);
    say(`Added ${document.title}: ${plural(ingested.passages, "passage")}. Ask away.`);
    return true;
  } catch (problem) {
    say(`${problem.title ?? "The text was not added"}: ${problem.message}`, true);
    return false;
  } finally {
    button.disabled = false;
  }
}

/** A text that was added: it can be read and removed again. */
function addedRow(ingested, title) {
  const href = `/document?${new URLSearchParams({ corpus: ingested.corpus, id: ingested.document })}`;
  const row = make(
    "li",
    {},
    make("a", { href }, foreign(title)),
    quiet(`in ${ingested.corpus}, ${plural(ingested.passages, "passage")}`),
    plain("Remove", remove, { class: "plain lesser" }),
  );
  function remove() {
    row.hidden = true;
    byId("text").focus();
    removeSoon(title, removeNow, () => (row.hidden = false));
  }
  async function removeNow() {
    try {
      await client.delete(ingested.document, { corpus: ingested.corpus });
      row.remove();
    } catch (problem) {
      row.hidden = false;
      say(problem.message, true);
    }
  }
  return row;
}

function say(sentence, bad = false) {
  byId("added-status").textContent = sentence;
  byId("added-status").classList.toggle("bad", bad);
}
