// The question's field as a combobox (ARIA's pattern with a list): what was asked before, titles, and headings.

import { foreign, make } from "/static/dom.js";

const MOST = 7; // options at once
const LEAST = 2; // letters of a word that titles complete

/** `asked()` are questions, which `again(text)` asks; `titles()` complete the word that is typed. */
export function installCombobox(input, list, { asked, titles, again }) {
  let options = [];
  let active = -1;

  input.addEventListener("input", () => open(input.value.trim() ? matching(input.value, asked(), titles()) : []));
  input.addEventListener("blur", close);
  input.form.addEventListener("submit", close);
  input.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key === "Escape" && options.length > 0) close();
    else if (key === "Enter" && active >= 0) pick(options[active]);
    else if (key === "ArrowDown" || key === "ArrowUp") {
      if (options.length === 0) open(matching(input.value, asked(), titles()));
      move(key === "ArrowDown" ? 1 : -1);
    } else return;
    event.preventDefault();
  });

  function open(found) {
    options = found;
    active = -1;
    const item = (one, n) => {
      const look = { id: `option-${n}`, role: "option", "aria-selected": "false", class: one.isAsked && "asked" };
      return make("li", { ...look, mousedown: (event) => choose(event, one) }, foreign(one.text));
    };
    list.replaceChildren(...found.map(item));
    show();
  }

  function choose(event, option) {
    event.preventDefault(); // the field keeps the focus
    pick(option);
  }

  function close() {
    open([]);
  }

  function move(by) {
    if (options.length === 0) return;
    active = active < 0 && by < 0 ? options.length - 1 : (active + by + options.length) % options.length;
    show();
  }

  function show() {
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(options.length > 0));
    if (active >= 0) input.setAttribute("aria-activedescendant", `option-${active}`);
    else input.removeAttribute("aria-activedescendant");
    for (const [n, item] of [...list.children].entries()) item.setAttribute("aria-selected", String(n === active));
  }

  function pick({ text, isAsked }) {
    close();
    if (isAsked) return again(text);
    input.value = completed(input.value, text);
  }
}

/** Questions that hold all that is typed, then titles of which a word begins as its last word does. */
function matching(typed, asked, titles) {
  const all = typed.trim().toLowerCase();
  const word = lastWord(typed).toLowerCase();
  const parts = (title) => title.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  const begins = (title) => word.length >= LEAST && parts(title).some((own) => own.startsWith(word));
  const questions = [...new Set(asked)].filter((text) => text.toLowerCase().includes(all) && text !== typed);
  return [
    ...questions.slice(0, 3).map((text) => ({ text, isAsked: true })),
    ...titles.filter((text) => begins(text) && text !== typed).map((text) => ({ text, isAsked: false })),
  ].slice(0, MOST);
}

const lastWord = (typed) => typed.match(/[\p{L}\p{N}]+$/u)?.[0] ?? "";

/** The last word as the title of which it is a part; "the The mill" has one article. */
function completed(typed, title) {
  const before = typed.slice(0, typed.length - lastWord(typed).length);
  const article = before.trim().split(/\s+/).at(-1).toLowerCase();
  return before + (article && title.toLowerCase().startsWith(`${article} `) ? title.slice(article.length + 1) : title);
}
