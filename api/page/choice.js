// Where to ask: a select of one corpus or all, with boxes for several. Its value is the API's: `a`, `a,b` or `*`.

import { byId, make } from "/static/dom.js";

const EVERY = "*";
const SEVERAL = "…"; // no corpus can be called so

const select = byId("corpus");
const boxes = byId("several");
let listed = [];

/** `change()` is called when another choice stands. */
export function installChoice(change) {
  select.addEventListener("change", () => {
    boxes.hidden = select.value !== SEVERAL;
    if (select.value === SEVERAL) {
      tick(listed.slice(0, 2));
      boxes.querySelector("input").focus();
      choose(listed.slice(0, 2).join(","));
    }
    change();
  });
  boxes.addEventListener("change", ({ target }) => {
    const ticked = [...boxes.querySelectorAll("input:checked")].map((box) => box.value);
    if (ticked.length === 0) target.checked = true; // somewhere must be asked
    else choose(ticked.join(","));
    change();
  });
}

export function fillChoice(names, chosen) {
  listed = names;
  const values = [...new Set([...names, chosen])].filter((name) => name !== EVERY);
  const several = names.length > 1 ? [EVERY] : [];
  select.replaceChildren(...[...values, ...several, ...(names.length > 2 ? [SEVERAL] : [])].map(option));
  const box = (name) => make("label", {}, make("input", { type: "checkbox", value: name }), name);
  boxes.replaceChildren(make("legend", { class: "hidden" }, "Corpora to ask"), ...names.map(box));
  choose(chosen);
  boxes.hidden = !chosen.includes(",");
  tick(chosen.split(","));
}

/** Selects a value, which becomes an option where it is none. */
export function choose(value) {
  for (const other of [...select.options]) if (other.value.includes(",") && other.value !== value) other.remove();
  if (![...select.options].some((one) => one.value === value)) select.prepend(option(value));
  select.value = select.dataset.chosen = value;
}

/** The corpora that are chosen. */
export const chosenCorpora = () => (select.value === EVERY ? listed : select.value.split(","));

const NAMED = { [EVERY]: "all corpora", [SEVERAL]: "several …" };
const option = (value) => make("option", { value }, NAMED[value] ?? value.replaceAll(",", ", "));

function tick(names) {
  for (const box of boxes.querySelectorAll("input")) box.checked = names.includes(box.value);
}
