// A visitor's own texts: by paste, by file, by drop. Each can be taken back.

import { byId, foreign, make, plural } from "/static/dom.js";
import { call, documentPath } from "/static/http.js";

const MAX_BYTES = 5_000_000; // of one text; the server's own bound
const TITLE = 70; // characters of a first line that serve as a title

/** `added(corpus)` is called when new texts can be asked. */
export function installOwnText(added) {
  const form = byId("add");
  const take = (documents) => addAll(documents, added);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = byId("text").value;
    if (!text.trim()) return say("Paste a text first.", true);
    const title = byId("title").value.trim() || firstLine(text);
    if (await take([{ title, text }])) {
      byId("text").value = "";
      byId("title").value = "";
    }
  });
  byId("files").addEventListener("change", async (event) => {
    const files = [...event.target.files];
    event.target.value = ""; // the same file may be chosen again
    await takeFiles(files, take);
  });
  installDrop((files) => takeFiles(files, take));
}

function installDrop(dropped) {
  const veil = byId("drop");
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => {
    if (hasFiles(event)) veil.hidden = false;
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

async function takeFiles(files, take) {
  const documents = [];
  for (const file of files) {
    try {
      documents.push(await readFile(file));
    } catch (error) {
      return say(error.message, true);
    }
  }
  if (documents.length > 0) await take(documents);
}

/** A file as a document; its name is id and title. Throws Error with a sentence. */
async function readFile(file) {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} is larger than 5 MB; split it.`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (text.includes("\0")) throw new TypeError("binary");
    return { id: file.name, title: file.name.replace(/\.[^.]+$/, ""), text };
  } catch {
    throw new Error(`${file.name} is not UTF-8 text; save it as plain text first.`);
  }
}

function firstLine(text) {
  const line = text.trim().split("\n", 1)[0].replace(/^#+\s*/, "");
  const points = [...line];
  return points.length <= TITLE ? line : `${points.slice(0, TITLE - 1).join("")}…`;
}

/** Adds the documents one after another; true when all were taken. */
async function addAll(documents, added) {
  const corpus = byId("into").value.trim();
  const button = byId("add").querySelector("button");
  button.disabled = true;
  try {
    let passages = 0;
    for (const document of documents) {
      say(`Adding ${document.title} …`);
      const ingested = await call("POST", "/v1/documents", { body: { ...document, corpus } });
      passages += ingested.passages;
      listAdded(ingested, document.title);
    }
    const what = documents.length === 1 ? documents[0].title : `${documents.length} texts`;
    await added(corpus);
    say(`Added ${what}: ${plural(passages, "passage", "passages")}. Ask away.`);
    return true;
  } catch (problem) {
    say(`${problem.title ?? "The text was not added"}: ${problem.message}`, true);
    return false;
  } finally {
    button.disabled = false;
  }
}

function listAdded(ingested, title) {
  const path = documentPath(ingested.corpus, ingested.document);
  const row = make(
    "li",
    {},
    make("a", { href: `/document?${new URLSearchParams({ corpus: ingested.corpus, id: ingested.document })}` }, foreign(title)),
    make("span", { class: "quiet" }, `in ${ingested.corpus}, ${plural(ingested.passages, "passage", "passages")}`),
    make("button", { type: "button", class: "plain", click: remove }, "Remove"),
  );
  async function remove() {
    try {
      await call("DELETE", path);
      row.remove();
      say(`Removed ${title}.`);
    } catch (problem) {
      say(problem.message, true);
    }
  }
  byId("added").append(row);
}

function say(sentence, bad = false) {
  byId("added-status").textContent = sentence;
  byId("added-status").classList.toggle("bad", bad);
}
