// Elements from plain values. Strings become text nodes, always: documents are hostile, and nothing here parses HTML.

import { useKey } from "/static/client.js";

/** An element: `make("a", {href: "/"}, "text", other)`. Listeners go in as functions under their event's name. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => (child ?? false) !== false));
  return element;
}

/** A button that looks like a link. */
export const plain = (name, click, more) => make("button", { type: "button", class: "plain", click, ...more }, name);

export const quiet = (...inside) => make("span", { class: "quiet" }, inside);

/** A section under its name. */
export const section = (name, ...content) =>
  make("section", { class: "section", "aria-label": name }, make("h2", {}, name), content);

/** A table that scrolls within the page; rows are lists of what their cells hold. */
export function table(heads, rows) {
  const row = (cells, tag, look = {}) => make("tr", {}, cells.map((cell) => make(tag, look, cell)));
  const body = make("tbody", {}, rows.map((cells) => row(cells, "td")));
  const head = make("thead", {}, row(heads, "th", { scope: "col" }));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", {}, head, body));
}

/** Text of a document inside a line of ours: it keeps its own direction. */
export const foreign = (text) => make("bdi", {}, text);

export const byId = (id) => document.getElementById(id);

// What people can do about it here; the server's own remedies are for programs and operators.
const FOR_PEOPLE = {
  timeout: "The server is busy. Try again: what was read so far is kept.",
  too_many_requests: "The server is busy. Try again in a moment.",
  unknown_document: "It was removed, or the corpus has it under another name.",
  unknown_corpus: "Choose another corpus, or make this one by adding a text.",
};

/** A card that shows a problem, with a button to try again when there is something to try. */
export function problemCard(problem, retry = null) {
  const own = FOR_PEOPLE[problem.code];
  return make(
    "div",
    { class: "card problem", role: "alert" },
    make("h2", {}, problem.title),
    [own ?? problem.detail, own ? null : problem.remedy].filter(Boolean).map((text) => make("p", {}, text)),
    problem.status === 401 && retry ? keyForm(retry) : null,
    make("p", {}, retry ? plain("Try again", retry) : null, " ", make("code", {}, problem.code)),
  );
}

/** Asks for the server's key, and tries again with it. */
function keyForm(retry) {
  const look = { type: "password", autocomplete: "current-password", placeholder: "sq-…", required: true };
  const field = make("input", { id: "key", ...look });
  const submit = (event) => {
    event.preventDefault();
    useKey(field.value.trim());
    retry();
  };
  const label = make("label", { for: "key" }, "Your key");
  return make("form", { class: "key", submit }, label, field, make("button", { type: "submit" }, "Use it"));
}

export const percent = (score) => (score > 0 && score < 0.005 ? "<1 %" : `${Math.round(score * 100)} %`);

export const count = (number) => number.toLocaleString("en");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const size = (bytes) => (bytes < 1e6 ? `${count(Math.ceil(bytes / 1e3))} KB` : `${(bytes / 1e6).toFixed(1)} MB`);

/** How far a task is with the file that it reads. */
export const readingOf = ({ texts, stored, page, pages }) => {
  if (texts > 1) return `${count(stored)} of ${plural(texts, "text")}`;
  return pages > 0 ? `recognized ${count(page)} of ${plural(pages, "page")}` : "reading …";
};

/** How much of that is done, 0 to 1; null where that is not known yet. */
export const shareOf = ({ texts, stored, page, pages }) => (texts ? stored / texts : pages ? page / pages : null);
