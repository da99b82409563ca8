// One document: its outline, the answer's span and all other candidates marked, with ticks beside the scroll bar.

import { copier, placeOf } from "/static/actions.js";
import { blocks } from "/static/blocks.js";
import { byId, count, foreign, make, percent, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";
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
    const all = problem.code === "unknown_document" ? make("p", {}, "See ", make("a", { href: `/corpus/${corpus}` }, "what the corpus has"), ".") : "";
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
    this.page = make("figure", { class: "page", hidden: true });
    this.shown = null; // the span whose page is shown
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
    main.replaceChildren(head(this.found, this.answer), ...[list, this.walk, this.page, this.text, this.ticks].filter(Boolean));
    addEventListener("keydown", (event) => this.key(event));
    this.render();
  }

  /** More spans to mark; those that the answer overlaps are its own. */
  add(spans) {
    const own = this.spans[0];
    const others = spans.filter((one) => !own || one.end <= own.start || own.end <= one.start).map((one) => this.placed(one));
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
    const marks = this.spans.map((span, number) => ({ ...span, made: (first = span.first, last = span.last) => this.mark(span, number, first, last) }));
    const inside = (block) => marks.filter((mark) => mark.first < block.last && block.first < mark.last);
    for (const { first, last, made, within } of [...marks, ...this.blocks.map((one) => ({ ...one, within: inside(one) }))].sort((one, other) => one.first - other.first || other.last - one.last)) {
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
    if (this.page.hidden) this.text.querySelector("mark.current")?.scrollIntoView({ block: "center" });
    this.showPage();
  }

  /** The page of the file that the current span stands on; the text alone where there is none. */
  async showPage() {
    const span = this.spans[this.current];
    const number = span && this.found.has_file && placeAt(this.found, span.start)?.page;
    if (!number || this.shown === span.start) return;
    this.shown = span.start;
    try {
      const picture = await client.page(id, { corpus, start: span.start, end: span.end });
      if (this.shown !== span.start) return;
      const alt = `Page ${number} of the file, ${this.found.text.slice(span.first, span.last)} marked`;
      const image = make("img", { src: await dataUrl(picture), alt });
      await image.decode();
      this.page.hidden = false;
      this.page.replaceChildren(...pageView(image, number));
      if (this.spans.length === 1 || this.current === this.spans.findIndex((one) => one.start === this.answer?.start)) scrollTo(0, 0);
    } catch {
      this.page.hidden = true; // its text is here all the same
    }
  }

  mark(span, number, first, last) {
    const isAnswer = this.answer !== null && span.start === this.answer.start && span.end === this.answer.end;
    const names = [isAnswer ? "" : "also", number === this.current ? "current" : ""].filter(Boolean).join(" ");
    return make("mark", { class: names, title: span.score === null ? null : `${percent(span.score)} sure` }, this.found.text.slice(first, last));
  }

  more() {
    const all = () => {
      this.whole = true;
      this.render();
    };
    return make("p", { class: "cut" }, make("button", { type: "button", class: "plain", click: all }, "Show the whole document"));
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
      make("button", { type: "button", class: "plain", click: () => this.step(-1) }, "Previous passage"),
      make("span", { class: "quiet" }, `${this.current + 1} of ${this.spans.length}`),
      make("button", { type: "button", class: "plain", click: () => this.step(1) }, "Next passage"),
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
    const items = entries.map(({ character, words, level }) => {
      const button = make("button", { type: "button", class: "plain", click: () => this.goTo(character) }, foreign(words));
      return make("li", { class: `level-${level}` }, button);
    });
    return make("details", { class: "outline" }, make("summary", {}, `Outline, ${count(entries.length)} entries`), make("ol", {}, items));
  }

  /** Scrolls to a character that carries no mark: an empty element is put there for it. */
  goTo(character) {
    const index = utf16Index(this.found.text, character);
    this.center = index;
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

const MARK = [255, 226, 138]; // as the server marks words on white paper
const WHITE = 250; // of 255, from which a pixel is paper
const BELOW = 0.06; // of the page's height that is shown below its last ink
const READABLE = 820; // pixels of width from which the words of a page can be read

/** The picture of a page in a frame that shows what is marked: of a small screen enlarged, until all of it is asked for. */
function pageView(image, number) {
  const frame = make("div", { class: "frame", tabindex: 0, role: "group", "aria-label": `Page ${number}` }, image);
  const zoom = make("button", { type: "button", class: "plain", click: () => show(!isNear) });
  const { at, bottom } = drawn(image);
  image.style.aspectRatio = `${image.naturalWidth} / ${bottom}`; // the style cuts what is below
  let isNear;
  function show(near) {
    isNear = near;
    image.style.width = near ? `${Math.max(READABLE, 1.6 * frame.clientWidth)}px` : "100%";
    zoom.textContent = near ? "Fit to width" : "Zoom in";
    if (at) frame.scrollTo(at.x * image.clientWidth - frame.clientWidth / 2, at.y * image.clientHeight - frame.clientHeight / 2);
  }
  requestAnimationFrame(() => show(frame.clientWidth < READABLE / 1.6));
  return [frame, make("figcaption", { class: "quiet" }, `Page ${number} as it stands in the file. Its text follows. `, zoom)];
}

/** `at` {x, y}: the middle of what is marked, as shares of the picture that is shown; null where nothing is. `bottom`: the row of
 * pixels at which it ends, since a short page is white below. */
function drawn(image) {
  const { naturalWidth: width, naturalHeight: height } = image;
  const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  let [first, last, left, right, ink] = [-1, 0, width, 0, 0];
  for (let n = 0; n < data.length; n += 4) {
    if (data[n] < WHITE || data[n + 1] < WHITE || data[n + 2] < WHITE) ink = n;
    if (data[n] !== MARK[0] || data[n + 1] !== MARK[1] || data[n + 2] !== MARK[2]) continue;
    const x = (n / 4) % width;
    last = (n / 4 - x) / width;
    if (first < 0) first = last;
    [left, right] = [Math.min(left, x), Math.max(right, x)];
  }
  const bottom = Math.min(height, Math.ceil(ink / 4 / width + BELOW * height));
  return { bottom, at: first < 0 ? null : { x: (left + right) / 2 / width, y: (first + last) / 2 / bottom } };
}

const dataUrl = (blob) =>
  new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(blob);
  });

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
  return make(
    "div",
    { class: "head" },
    make("h1", { dir: "auto" }, found.title || found.id),
    make("p", { class: "quiet" }, foreign(found.id), ` · ${count([...found.text].length)} characters in `, make("a", { href: `/corpus/${corpus}` }, corpus)),
    place ? make("p", {}, "The answer stands at ", placeOf(place), ".") : null,
    make("p", { class: "ways" }, found.has_file ? downloader(found) : null, source(found)),
    extra.length > 0 ? make("dl", { class: "meta" }, extra.flat()) : null,
  );
}

/** The place in force at a character. */
function placeAt(found, character) {
  return (found.places ?? []).filter(([first]) => first <= character).at(-1)?.[1] ?? null;
}

/** A button that saves the file: a link could not bring the visitor's key. */
function downloader(found) {
  const button = make("button", { type: "button", class: "plain", click }, "Download the file");
  async function click() {
    try {
      const address = URL.createObjectURL(await client.file(found.id, { corpus }));
      make("a", { href: address, download: (found.origin.replace(/^upload:/, "") || found.id).split("/").at(-1) }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    } catch (problem) {
      button.replaceWith(make("span", { class: "quiet", role: "alert" }, problem.detail ?? problem.message));
    }
  }
  return button;
}

/** Where the document came from; only web addresses become links: a source is whatever its writer wrote, a path of another
 * machine most often. */
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
