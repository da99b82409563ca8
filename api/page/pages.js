// Pages of a PDF as pictures: the one with a mark, the others by turning or by their thumbnails.

import { make, plain, quiet } from "/static/dom.js";
import { client } from "/static/client.js";

const MARK = [255, 226, 138]; // as the server marks words on white paper
const WHITE = 250; // of 255, from which a pixel is paper
const BELOW = 0.06; // of the page's height that is shown below its last ink
const READABLE = 820; // pixels of width from which the words of a page can be read

/** The picture of a page in a frame that shows what is marked: of a small screen enlarged, until a press. */
function pageView(image, number) {
  const frame = make("div", { class: "frame", tabindex: 0, role: "group", "aria-label": `Page ${number}` }, image);
  const zoom = plain("", () => show(!isNear));
  const { at, bottom } = drawn(image);
  image.style.aspectRatio = `${image.naturalWidth} / ${bottom}`; // the style cuts what is below
  let isNear;
  function show(near) {
    isNear = near;
    image.style.width = near ? `${Math.max(READABLE, 1.6 * frame.clientWidth)}px` : "100%";
    zoom.textContent = near ? "Fit to width" : "Zoom in";
    if (!at) return;
    const { clientWidth: width, clientHeight: height } = image;
    frame.scrollTo(at.x * width - frame.clientWidth / 2, at.y * height - frame.clientHeight / 2);
  }
  requestAnimationFrame(() => show(frame.clientWidth < READABLE / 1.6));
  return [frame, make("figcaption", { class: "quiet" }, `Page ${number} as it stands in the file. `, zoom)];
}

/** `at` {x, y}: the middle of what is marked, as shares of the picture that is shown; null where nothing is. `bottom`:
 * the row of pixels at which it ends, since a short page is white below. */
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

/** A picture's address that the page's policy allows. */
export const dataUrl = (blob) =>
  new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(blob);
  });

/** [{number, start}] of a document's pages that have text, in order. */
export function pagesOf({ places = [] }) {
  const first = new Map();
  for (const [start, { page }] of places) if (page && !first.has(page)) first.set(page, start);
  return [...first].map(([number, start]) => ({ number, start }));
}

/** The page that is looked at, buttons to turn it, and all pages small. */
export class Pages {
  constructor(found, corpus) {
    Object.assign(this, { found, corpus, pages: pagesOf(found), at: 0, shown: null });
    this.picture = make("div", {});
    this.turning = make("div", { class: "turn", role: "group", "aria-label": "Turn the page" });
    const small = this.pages.map((page, n) => this.small(page, n));
    this.strip = make("ol", { class: "strip", tabindex: 0, "aria-label": "Pages" }, small);
    this.element = make("figure", { class: "page", hidden: true }, this.turning, this.picture, this.strip);
  }

  /** Shows the page that a span stands on, with it marked, else the first; whether there is one. */
  async show(span = { ...this.pages[0], end: this.pages[0].start }) {
    const { start } = span;
    if (this.shown === start) return true;
    this.shown = start;
    try {
      const image = await this.image(span);
      if (this.shown !== start) return false; // another is wanted meanwhile
      this.at = this.pages.findLastIndex((page) => page.start <= start);
      await image.decode();
      this.picture.replaceChildren(...pageView(image, this.pages[this.at].number));
      this.showTurning();
      return true;
    } catch {
      return false; // its text is here all the same
    }
  }

  async image({ start, end, first, last }) {
    const { number } = this.pages.findLast((page) => page.start <= start);
    const picture = await client.page(this.found.id, { corpus: this.corpus, start, end });
    const found = end > start ? `, ${this.found.text.slice(first, last)} marked` : "";
    return make("img", { src: await dataUrl(picture), alt: `Page ${number} of the file${found}` });
  }

  turn(n) {
    const { start } = this.pages[n];
    return this.show({ start, end: start });
  }

  showTurning() {
    const button = (name, n) => plain(name, () => this.turn(n), { disabled: !this.pages[n] });
    const { number } = this.pages[this.at];
    const where = quiet(`Page ${number} of ${this.pages.at(-1).number}`);
    this.turning.replaceChildren(button("Previous page", this.at - 1), where, button("Next page", this.at + 1));
    this.strip.hidden = this.pages.length < 2;
    for (const [n, item] of [...this.strip.children].entries())
      item.firstChild.setAttribute("aria-current", n === this.at ? "page" : "false");
  }

  /** A page's thumbnail, made once it is in sight. */
  small({ number, start }, n) {
    const button = plain(String(number), () => this.turn(n), { "aria-label": `Page ${number}` });
    const sight = new IntersectionObserver(async ([one]) => {
      if (!one.isIntersecting) return;
      sight.disconnect();
      const image = await this.image({ start, end: start }).catch(() => null); // its number is there all the same
      if (image) button.prepend(Object.assign(image, { alt: "" }));
    });
    sight.observe(button);
    return make("li", {}, button);
  }
}
