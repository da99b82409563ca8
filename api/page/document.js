// One document: its outline, the answer's span and all other candidates marked, with ticks beside the scroll bar.

import { copier, placeOf } from "/static/actions.js";
import { blocks } from "/static/blocks.js";
import { byId, count, foreign, make, percent, plain, problemCard, quiet } from "/static/dom.js";
import { client } from "/static/client.js";
import { Pages, pagesOf } from "/static/pages.js";
import { placeText } from "/static/place.js";
import { utf16Index } from "/static/text.js";

const AROUND = 30_000; // UTF-16 units shown on each side of what is looked at, until all is asked for
const CANDIDATES = 20; // asked for: as many as are kept of a question
const OUTLINED = 400; // entries of an outline at most

const address = new URLSearchParams(location.search);
const corpus = address.get("corpus") ?? "";
const id = address.get("id") ?? "";
const question = address.get("q") ?? "";

async function load() {
  const main = byId("document");
  main.replaceChildren(make("p", { class: "quiet" }, "Fetching the document …"));
  try {
    const found = await client.document(id, { corpus });
    const view = new View(found, asked());
    view.open(main);
    if (question) view.add(await candidates());
  } catch (problem) {
    const list = make("p", {}, "See ", make("a", { href: `/corpus/${corpus}` }, "what the corpus has"), ".");
    const all = problem.code === "unknown_document" ? list : "";
    main.replaceChildren(make("h1", { class: "hidden" }, id), problemCard(problem, load), all);
  }
  main.setAttribute("aria-busy", "false");
}

/** The span that the address names, or null. */
function asked() {
  const [start, end] = [Number(address.get("start")), Number(address.get("end"))];
  return Number.isInteger(start) && Number.isInteger(end) && end > start ? { start, end, score: null } : null;
}

/** What else the question finds in this document; the answer stands whether or not they can be had. */
async function candidates() {
  try {
    const answer = await client.ask(question, { corpus, n_best: CANDIDATES });
    const start = asked()?.start;
    return answer.n_best.filter((one) => one.document === id && (one.possible || one.start === start));
  } catch {
    return [];
  }
}

class View {
  constructor(found, answer) {
    this.found = found;
    this.answer = answer;
    this.spans = answer ? [this.placed(answer)] : [];
    this.current = 0;
    this.center = this.spans[0]?.first ?? 0;
    this.whole = found.text.length <= 2 * AROUND;
    this.text = make("div", { class: "text", dir: "auto" });
    this.pages = found.has_file && pagesOf(found).length > 0 ? new Pages(found, corpus) : null;
    this.tabs = make("div", { class: "tabs", role: "group", "aria-label": "View", hidden: true });
    this.blocks = blocks(found);
    this.lengths = new WeakMap(); // of the text that an element stands for
    this.ticks = make("div", { class: "ticks", "aria-hidden": "true" });
    this.walk = make("div", { class: "walk", role: "group", "aria-label": "Passages found" });
  }

  /** A span with its ends as indices of the string. */
  placed(span) {
    const first = utf16Index(this.found.text, span.start);
    return { ...span, first, last: utf16Index(this.found.text, span.end - span.start, first) };
  }

  open(main) {
    document.title = `${this.found.title || this.found.id} · shardqa`;
    const outlined = outline(this.found);
    const list = outlined.length > 1 ? this.outlineOf(outlined) : null;
    const parts = [list, this.walk, this.tabs, this.pages?.element, this.text, this.ticks].filter(Boolean);
    main.replaceChildren(head(this.found, this.answer), ...parts);
    addEventListener("keydown", (event) => this.key(event));
    this.render();
  }

  /** The page of the file as one tab, its text as another; the text alone where there is no page. */
  show(isPage) {
    const look = (is) => ({ type: "button", "aria-pressed": String(isPage === is), click: () => this.show(is) });
    const tab = (name, is) => make("button", look(is), name);
    this.tabs.replaceChildren(tab("Page", true), tab("Text", false));
    this.tabs.hidden = false;
    this.pages.element.hidden = !isPage;
    this.text.hidden = this.ticks.hidden = isPage;
    if (!isPage) this.text.querySelector("mark.current")?.scrollIntoView({ block: "center" });
  }

  /** More spans to mark; those that the answer overlaps are its own. */
  add(spans) {
    const own = this.spans[0];
    const isApart = (one) => !own || one.end <= own.start || own.end <= one.start;
    const others = spans.filter(isApart).map((one) => this.placed(one));
    const score = spans.find((one) => own && one.start === own.start && one.end === own.end)?.score ?? null;
    this.spans = [...(own ? [{ ...own, score }] : []), ...others].sort((one, other) => one.first - other.first);
    this.current = Math.max(0, this.spans.findIndex((one) => one.first === own?.first));
    this.render();
  }

  render() {
    const { text } = this.found;
    const from = this.whole ? 0 : Math.max(0, this.center - AROUND);
    const to = this.whole ? text.length : Math.min(text.length, this.center + AROUND);
    const parts = [];
    let place = from;
    const made = (span, number) => (first = span.first, last = span.last) => this.mark(span, number, first, last);
    const marks = this.spans.map((span, number) => ({ ...span, made: made(span, number) }));
    const inside = (block) => marks.filter((mark) => mark.first < block.last && block.first < mark.last);
    const every = [...marks, ...this.blocks.map((one) => ({ ...one, within: inside(one) }))];
    const longest = ({ first, last }) => (first === last ? Infinity : last); // our own line stands before the file's
    every.sort((one, other) => one.first - other.first || longest(other) - longest(one));
    for (const { first, last, made, within } of every) {
      if (first < place || last > to) continue;
      const element = within ? made(within) : made();
      this.lengths.set(element, last - first);
      parts.push(text.slice(place, first), element);
      place = last;
    }
    parts.push(text.slice(place, to));
    if (from > 0) parts.unshift(this.more());
    if (to < text.length) parts.push(this.more());
    this.text.replaceChildren(...parts);
    this.showTicks();
    this.showWalk();
    if (!this.text.hidden) this.text.querySelector("mark.current")?.scrollIntoView({ block: "center" });
    this.pages?.show(this.spans[this.current]).then((isThere) => isThere && this.tabs.hidden && this.show(true));
  }

  mark(span, number, first, last) {
    const isAnswer = this.answer !== null && span.start === this.answer.start && span.end === this.answer.end;
    const names = [isAnswer ? "" : "also", number === this.current ? "current" : ""].filter(Boolean).join(" ");
    const title = span.score === null ? null : `${percent(span.score)} sure`;
    return make("mark", { class: names, title }, this.found.text.slice(first, last));
  }

  more() {
    const all = () => {
      this.whole = true;
      this.render();
    };
    return make("p", { class: "cut" }, plain("Show the whole document", all));
  }

  showTicks() {
    const ticks = this.spans.map((span) => {
      const tick = make("i");
      tick.style.top = `${(100 * span.first) / Math.max(1, this.found.text.length)}%`;
      return tick;
    });
    this.ticks.replaceChildren(...ticks);
  }

  showWalk() {
    this.walk.hidden = this.spans.length < 2;
    this.walk.replaceChildren(
      plain("Previous passage", () => this.step(-1)),
      quiet(`${this.current + 1} of ${this.spans.length}`),
      plain("Next passage", () => this.step(1)),
    );
  }

  step(by) {
    if (this.spans.length === 0) return;
    this.current = (this.current + by + this.spans.length) % this.spans.length;
    this.center = this.spans[this.current].first;
    this.render();
  }

  key(event) {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "n" || event.key === "p") this.step(event.key === "n" ? 1 : -1);
  }

  outlineOf(entries) {
    const entry = ({ character, words }) => plain(foreign(words), () => this.goTo(character));
    const items = entries.map((one) => make("li", { class: `level-${one.level}` }, entry(one)));
    const summary = make("summary", {}, `Outline, ${count(entries.length)} entries`);
    return make("details", { class: "outline" }, summary, make("ol", {}, items));
  }

  /** Scrolls to a character that carries no mark: an empty element is put there for it. */
  goTo(character) {
    const index = utf16Index(this.found.text, character);
    this.center = index;
    if (!this.tabs.hidden) this.show(false);
    this.render();
    const target = this.nodeAt(index);
    target?.scrollIntoView({ block: "start" });
  }

  nodeAt(index) {
    let place = this.whole ? 0 : Math.max(0, this.center - AROUND);
    for (const node of this.text.childNodes) {
      if (node.nodeName === "P") continue;
      const length = this.lengths.get(node) ?? node.textContent.length;
      if (index < place + length && node.nodeType === Node.TEXT_NODE) {
        const anchor = make("span", { class: "anchor" });
        node.splitText(index - place).before(anchor);
        return anchor;
      }
      if (index < place + length) return node;
      place += length;
    }
    return null;
  }
}

/** [{character, words, level}] where the headings, page or slide change. */
function outline(found) {
  const entries = [];
  let before = "";
  for (const [character, place] of found.places ?? []) {
    const { headings = [], part, page, slide, sheet } = place;
    const words = headings.at(-1) ?? placeText({ part, page, slide, sheet });
    const name = JSON.stringify([headings, headings.length ? null : [part, page, slide, sheet]]);
    if (words && name !== before) entries.push({ character, words, level: Math.min(4, Math.max(1, headings.length)) });
    before = name;
    if (entries.length === OUTLINED) break;
  }
  return entries;
}

function head(found, answer) {
  const extra = Object.entries(found.metadata).map(([name, value]) => [
    make("dt", {}, foreign(name)),
    make("dd", {}, foreign(typeof value === "string" ? value : JSON.stringify(value))),
  ]);
  const place = answer ? placeAt(found, answer.start) : null;
  const [length, link] = [count([...found.text].length), make("a", { href: `/corpus/${corpus}` }, corpus)];
  const file = found.places[0]?.[1].row ? found.id.split("/").slice(0, -1).join("/") : ""; // of which this is a row
  const find = `/corpus/${corpus}?${new URLSearchParams({ find: file })}`;
  const rows = file ? make("a", { href: find }, "All rows of ", foreign(file)) : null;
  return make(
    "div",
    { class: "head" },
    make("h1", { dir: "auto" }, found.title || found.id),
    make("p", { class: "quiet" }, foreign(found.id), ` · ${length} characters in `, link),
    place ? make("p", {}, "The answer stands at ", placeOf(place), ".") : null,
    make("p", { class: "ways" }, rows, found.has_file ? downloader(found) : null, source(found)),
    extra.length > 0 ? make("dl", { class: "meta" }, extra.flat()) : null,
  );
}

/** The place in force at a character. */
function placeAt(found, character) {
  return (found.places ?? []).filter(([first]) => first <= character).at(-1)?.[1] ?? null;
}

/** A button that saves the file: a link could not bring the visitor's key. */
function downloader(found) {
  const button = plain("Download the file", click);
  async function click() {
    try {
      const address = URL.createObjectURL(await client.file(found.id, { corpus }));
      const download = (found.origin.replace(/^upload:/, "") || found.id).split("/").at(-1);
      make("a", { href: address, download }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (problem) {
      button.replaceWith(make("span", { class: "quiet", role: "alert" }, problem.detail ?? problem.message));
    }
  }
  return button;
}

/** Where the document came from; only web addresses become links: a source is whatever its writer wrote, a path of
 * another machine most often. */
function source({ id: name, source: from }) {
  if (!from || from === name) return null;
  if (!/^https?:\/\/[^/]/i.test(from)) return copier("Copy its path", () => from);
  return make("a", { href: from, rel: "noopener noreferrer nofollow" }, "Open at ", foreign(from.split("/")[2]));
}

if (question) {
  byId("back").href = `/?${new URLSearchParams({ q: question, corpus: address.get("asked") ?? corpus })}`;
  byId("back").textContent = "Back to the answer";
}
load();
