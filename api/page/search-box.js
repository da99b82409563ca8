// <shardqa-search>: a search box for other sites, on shardqa.js alone. A page needs two lines:
//
//   <script type="module" src="https://qa.example/static/search-box.js"></script>
//   <shardqa-search corpus="handbook" key="sq-…" link="/pages/{document}"></shardqa-search>
//
// Attributes: `url` of the API (where the script comes from), `corpus` (the API's default; "a,b" or "*"), `key` (one
// that may only ask), `label`, `button`, and `link`, the address of a document: {document}, {corpus}, {title}, {start}
// and {end} stand for its own. Without it, links go to the document's `metadata.url`, else to the API's page of it.
//
// It takes the site's fonts and colours; `--shardqa-accent`, `--shardqa-line` and `--shardqa-mark` set others, and
// ::part(field), ::part(button), ::part(card), ::part(answer), ::part(quote) any style. The event `shardqa-answer` has
// the whole answer as `detail`. Strings become text nodes, always: documents are hostile.

import { Client, quoteOf } from "./shardqa.js";

const STYLE = `
:host {
  display: block; overflow-wrap: anywhere; --accent: var(--shardqa-accent, #1c6758);
  --line: var(--shardqa-line, color-mix(in srgb, currentColor 28%, transparent));
}
form { display: flex; gap: 8px; }
input, button { font: inherit; padding: 9px 13px; border-radius: 9px; min-height: 44px; box-sizing: border-box; }
input { flex: 1; min-width: 0; color: inherit; background: transparent; border: 1px solid var(--line); }
button { border: 0; background: var(--accent); color: #fff; font-weight: 600; cursor: pointer; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.card { border: 1px solid var(--line); border-radius: 12px; padding: 15px 19px; margin-top: 12px; }
.card > :first-child { margin-top: 0; }
.card > :last-child { margin-bottom: 0; }
.answer { font-size: 1.3em; line-height: 1.3; margin: 0 0 8px; }
.quote { margin: 10px 0 0; padding-inline-start: 13px; border-inline-start: 3px solid var(--line); }
.quote, .answer { white-space: pre-line; }
.from { margin: 7px 0 0; font-size: 0.88em; }
.from span { opacity: 0.78; }
a { color: inherit; }
mark { background: var(--shardqa-mark, #ffe39a); color: #23211d; border-radius: 3px; }
label { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.waiting { opacity: 0.5; }`;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value) element.setAttribute(name, value);
  element.append(...children.flat().filter(Boolean));
  return element;
}

const foreign = (text) => make("bdi", {}, text); // keeps its own direction

class SearchBox extends HTMLElement {
  #asking = null; // AbortController of the question under way

  connectedCallback() {
    if (this.shadowRoot) return;
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    const sheet = new CSSStyleSheet(); // no <style>: a site's Content-Security-Policy may forbid it
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const label = this.getAttribute("label") ?? "Ask a question";
    const look = { placeholder: label, required: "required", autocomplete: "off", enterkeyhint: "search" };
    this.field = make("input", { id: "field", part: "field", maxlength: "400", ...look });
    this.result = make("div", { role: "status", "aria-live": "polite" });
    const button = make("button", { part: "button" }, this.getAttribute("button") ?? "Ask");
    const form = make("form", { role: "search" }, make("label", { for: "field" }, label), this.field, button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask(this.field.value);
    });
    root.append(form, this.result);
  }

  get url() {
    return this.getAttribute("url") ?? new URL(import.meta.url).origin;
  }

  /** Asks as if the question had been typed; a later one ends it. */
  async ask(question) {
    if (!question.trim()) return;
    this.field.value = question;
    this.#asking?.abort();
    const { signal } = (this.#asking = new AbortController());
    this.result.className = "waiting";
    this.result.setAttribute("aria-busy", "true");
    try {
      const client = new Client({ url: this.url, key: this.getAttribute("key") ?? undefined });
      const answer = await client.ask(question, { corpus: this.getAttribute("corpus") ?? undefined, signal });
      this.#show(this.#answered(answer));
      this.dispatchEvent(new CustomEvent("shardqa-answer", { detail: answer, bubbles: true, composed: true }));
    } catch (problem) {
      if (problem.name !== "AbortError") this.#show([make("p", { role: "alert" }, problem.message)]);
    }
  }

  #show(parts) {
    this.result.className = "";
    this.result.setAttribute("aria-busy", "false");
    this.result.replaceChildren(make("article", { class: "card", part: "card" }, parts));
  }

  #answered(answer) {
    const said = (...words) => make("p", { class: "answer", part: "answer", dir: "auto" }, words);
    const quoted = (part) => [this.#quote(quoteOf(part)), this.#from(part)];
    if (answer.no_answer) return [said(unsaid(answer)), ...answer.parts.flatMap(quoted)];
    const source = { ...answer, corpus: answer.document_corpus };
    const quote = () => isQuoted(answer) && this.#quote(...marked(answer));
    if (answer.form === "span") return [said(answer.answer), quote(), this.#from(source)];
    const isOne = answer.parts.every((part) => part.document === answer.parts[0].document);
    if (!isOne) return answer.parts.flatMap(quoted);
    return [...answer.parts.map((part) => this.#quote(quoteOf(part))), this.#from(source)];
  }

  #quote = (...inside) => make("blockquote", { class: "quote", part: "quote", dir: "auto" }, inside);

  #from(source) {
    const { page, headings } = source.place ?? {};
    const where = [page && `p. ${page}`, headings?.length && `§ ${headings.join(" › ")}`].filter(Boolean).join(", ");
    const link = make("a", { href: this.#address(source) }, foreign(source.title || source.document));
    return make("p", { class: "from" }, link, where && make("span", {}, ", ", foreign(where)));
  }

  #address({ corpus, document: id, title, start, end, metadata }) {
    const fields = { corpus, document: id, title, start, end };
    const link = this.getAttribute("link");
    const filled = (all, field) => (field in fields ? encodeURIComponent(fields[field]) : all);
    if (link) return link.replace(/\{(\w+)\}/g, filled);
    if (/^https?:\/\//.test(metadata?.url)) return metadata.url;
    return `${this.url}/document?${new URLSearchParams({ corpus, id, start, end })}`;
  }
}

/** What to say where nothing is sure, and where the documents say nothing of it. */
function unsaid({ parts, absent }) {
  if (parts.length > 0) return "No sure answer. These sentences come nearest:";
  if (absent.length > 0) return `The documents don’t mention ${absent.join(" or ")}.`;
  return "No answer was found. Other words may find one.";
}

/** Whether there is more to quote than the answer; a table's row is a sentence that shardqa wrote. */
const isQuoted = ({ passage, answer, place }) => passage !== answer && !place?.cells;

/** The passage with the answer marked; offsets count code points, as Python does. */
function marked({ passage, passage_start, start, end }) {
  const points = [...passage];
  const cut = (from, to) => points.slice(from, to).join("");
  const [first, last] = [start - passage_start, end - passage_start];
  return [cut(0, first), make("mark", {}, cut(first, last)), cut(last)];
}

customElements.define("shardqa-search", SearchBox);
