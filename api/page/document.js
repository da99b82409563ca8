// One document, with the answer's span marked. Long ones show the part around the span first.

import { byId, count, foreign, make, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";
import { split } from "/static/text.js";

const AROUND = 30_000; // UTF-16 units shown on each side of the span before "show everything"

const address = new URLSearchParams(location.search);
const corpus = address.get("corpus") ?? "";
const id = address.get("id") ?? "";
const start = Number(address.get("start"));
const end = Number(address.get("end"));

async function load() {
  const main = byId("document");
  try {
    show(main, await client.document(id, { corpus }));
  } catch (problem) {
    main.replaceChildren(problemCard(problem, load));
  }
  main.setAttribute("aria-busy", "false");
}

function show(main, found) {
  document.title = `${found.title || found.id} · shardqa`;
  const marked = Number.isInteger(start) && Number.isInteger(end) && end > start;
  const [before, inside, after] = marked ? split(found.text, start, end) : ["", "", found.text];
  const text = make("div", { class: "text", dir: "auto" });
  main.replaceChildren(head(found, marked), text);
  fill(text, before, inside, after, before.length > AROUND || after.length > AROUND);
}

function fill(text, before, inside, after, cut) {
  const mark = inside ? make("mark", {}, inside) : null;
  const all = () => fill(text, before, inside, after, false);
  const more = () => make("p", { class: "cut" }, make("button", { type: "button", class: "plain", click: all }, "Show the whole document"));
  text.replaceChildren(
    ...[
      cut && before.length > AROUND ? more() : null,
      cut ? before.slice(-AROUND) : before,
      mark,
      cut ? after.slice(0, AROUND) : after,
      cut && after.length > AROUND ? more() : null,
    ].filter((part) => part !== null),
  );
  mark?.scrollIntoView({ block: "center" });
}

function head(found, marked) {
  const facts = [`${count([...found.text].length)} characters in ${corpus}`];
  if (marked) facts.push(`the answer is at ${count(start)}–${count(end)}`);
  const extra = Object.entries(found.metadata).map(([name, value]) => [
    make("dt", {}, foreign(name)),
    make("dd", {}, foreign(typeof value === "string" ? value : JSON.stringify(value))),
  ]);
  return make(
    "div",
    { class: "head" },
    make("h1", { dir: "auto" }, found.title || found.id),
    make("p", { class: "quiet" }, foreign(found.id), ` · ${facts.join(" · ")}`, source(found.source)),
    extra.length > 0 ? make("dl", { class: "meta" }, extra.flat()) : null,
  );
}

/** Only web addresses become links: a source is whatever its writer wrote. */
function source(text) {
  if (!text) return null;
  if (!/^https?:\/\//i.test(text)) return make("span", {}, " · from ", foreign(text));
  return make("span", {}, " · from ", make("a", { href: text, rel: "noopener noreferrer nofollow" }, foreign(text)));
}

if (address.get("q")) {
  byId("back").href = `/?${new URLSearchParams({ q: address.get("q"), corpus })}`;
  byId("back").textContent = "Back to the answer";
}
load();
