// For a hall: `/?present`. Large type, the answer beside its page, a code of its address, and the shards as they work.

import { byId, make, plural } from "/static/dom.js";
import { client } from "/static/client.js";
import { dataUrl } from "/static/pages.js";

const SAID = { terms: "in the corpus", rank: "found", read: "read" };
const isHall = new URLSearchParams(location.search).has("present");

let shards = []; // {node, tag}

/** Called with each step of a question; undefined where nobody looks. */
export const step = isHall
  ? ({ step: name, passages, best }) => show(best?.shard, `${plural(passages, "passage")} ${SAID[name]}`)
  : undefined;

/** Lights the shard that has the best so far; all of them are busy until there is one. */
function show(tag, sentence) {
  const lights = shards.map((one) => make("li", { class: one.tag === tag ? "lit" : tag ? null : "busy" }, one.node));
  byId("working").replaceChildren(make("ul", {}, lights), make("p", { class: "quiet" }, sentence));
}

/** The shard that gave the answer, and the code of its address. */
export async function showEnd(answer) {
  if (!isHall) return;
  const read = answer.shards.reduce((sum, one) => sum + one.passages, 0);
  const when = answer.cached ? "before" : `in ${Math.round(answer.timing.total)} ms`;
  show((!answer.no_answer && answer.n_best[0]?.shard) || "none", `${plural(read, "passage")} read ${when}`);
  const text = location.href.replace(/&?present=?/, "");
  const address = `/qr.svg?${new URLSearchParams({ text })}`;
  const image = await client.call("GET", address, { as: "blob" }).catch(() => null); // its words are there all the same
  if (image) byId("working").append(make("img", { src: await dataUrl(image), alt: "Code of this question’s address" }));
}

/** What an address keeps of this. */
export const kept = isHall ? [["present", ""]] : [];

if (isHall) {
  document.body.classList.add("hall");
  const { nodes } = await client.call("GET", "/v1/cluster").catch(() => ({ nodes: [] })); // not for every key
  shards = nodes.filter((one) => one.role === "master");
  show("none", "");
}
