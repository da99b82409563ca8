// The corpora as cards: what each holds, ask it, add to it, delete it.

import { byId, make, plain, plural, size } from "/static/dom.js";
import { client } from "/static/client.js";
import { removeSoon } from "/static/undo.js";

let chosen = () => {};
let dropped = () => {};

/** `chosen(name)` and `dropped(name)` are called when a card was used. */
export function installCorpora(listeners) {
  ({ chosen, dropped } = listeners);
}

export function showCards(corpora, current) {
  byId("corpora").hidden = corpora.length === 0;
  byId("corpora")
    .querySelector("ul")
    .replaceChildren(...corpora.map((one) => card(one, current.includes(one.name))));
}

function card(corpus, isCurrent) {
  const said = make("p", { class: "quiet", role: "status" });
  return make(
    "li",
    { class: isCurrent ? "current" : "" },
    make("h3", {}, make("a", { href: `/corpus/${corpus.name}` }, corpus.name)),
    make("p", { class: "quiet" }, `${plural(corpus.documents, "document")}, ${size(corpus.bytes)}${encoding(corpus)}`),
    make(
      "p",
      { class: "verbs" },
      plain("Ask", () => chosen(corpus.name), { "aria-label": `Ask ${corpus.name}` }),
      plain("Add", () => add(corpus.name), { "aria-label": `Add to ${corpus.name}` }),
      remover(corpus, said),
    ),
    said,
  );
}

/** How far the vectors are, until every passage has one. */
function encoding({ encoded, passages }) {
  const share = Math.floor((100 * encoded) / passages);
  return encoded === null || encoded >= passages ? "" : `; ${share} % found in other words, too`;
}

function add(name) {
  byId("into").value = name;
  byId("own").open = true;
  byId("text").focus();
}

/** Deletes after a while in which that can be taken back. */
function remover(corpus, said) {
  const name = `${corpus.name} and ${plural(corpus.documents, "document")}`;
  const click = () => {
    said.closest("li").hidden = true;
    removeSoon(name, remove, () => (said.closest("li").hidden = false));
  };
  async function remove() {
    try {
      await client.drop(corpus.name);
      await dropped(corpus.name);
    } catch (problem) {
      said.closest("li").hidden = false;
      said.textContent = problem.message;
    }
  }
  return plain("Delete", click, { class: "plain lesser", "aria-label": `Delete ${corpus.name}` });
}
