// The nodes, looked at every few seconds: slots, shards, replicas, index and reader, and how fast each replies.

import { byId, count, make, plural } from "/static/dom.js";
import { client } from "/static/client.js";

const EVERY = 2000; // ms between two looks
const KEPT = 40; // latencies of a node that are drawn
const SLOTS = 16384;
const SVG = "http://www.w3.org/2000/svg";

const latencies = new Map(); // node -> last milliseconds, oldest first

async function look() {
  try {
    const { nodes, model } = await client.call("GET", "/v1/cluster");
    for (const node of nodes) note(node);
    show(nodes, model);
  } catch (problem) {
    byId("said").textContent = `${problem.title}: ${problem.message}`;
  }
  byId("shards").setAttribute("aria-busy", "false");
  setTimeout(look, EVERY);
}

function note(node) {
  const known = latencies.get(node.node) ?? [];
  if (node.ms !== null) known.push(node.ms);
  latencies.set(node.node, known.slice(-KEPT));
}

function show(nodes, model) {
  const masters = nodes.filter((node) => node.role === "master");
  const served = masters.reduce((sum, node) => sum + slotsOf(node), 0);
  const broken = nodes.filter((node) => node.error).length;
  byId("said").textContent = [
    `${plural(masters.length, "shard", "shards")}, ${plural(nodes.length - masters.length, "replica", "replicas")}`,
    served === SLOTS ? "all slots are served" : `${count(SLOTS - served)} slots are served by nobody`,
    broken ? `${plural(broken, "node does", "nodes do")} not answer` : "every node answers",
    `reader ${model}`,
  ].join("; ");
  byId("slots").replaceChildren(...slotBar(masters));
  byId("shards").replaceChildren(...masters.map((master) => card(master, nodes.filter((node) => node.master === master.node))));
}

const slotsOf = (node) => node.slots.reduce((sum, [first, last]) => sum + last - first + 1, 0);

function slotBar(masters) {
  const ranges = masters.flatMap((node) => node.slots.map(([first, last]) => ({ first, last, node: node.node }))).sort((one, other) => one.first - other.first);
  return ranges.map(({ first, last, node }) => {
    const slice = make("i", { title: `${node}: ${first} to ${last}` });
    slice.style.flexGrow = String(last - first + 1);
    return slice;
  });
}

function card(master, replicas) {
  const facts = [
    ["Slots", `${count(slotsOf(master))}${master.moving ? `, ${count(master.moving)} on their way` : ""}`],
    ["Holds", `${plural(master.documents, "document", "documents")} in ${plural(master.passages, "passage", "passages")}`],
    ["Index", master.indexing ? "still reads its passages" : "complete"],
    ["Reader", master.has_reader === null ? "not known" : master.has_reader ? "stored" : "missing: shardqa prepare stores it"],
    ["Worker", master.worker ?? "this user may not read INFO"],
    ["Writes", master.refuses ?? "taken"],
    ["PING", latency(master)],
  ].filter(() => !master.error);
  return make(
    "article",
    { class: isWell(master) ? "card shard" : "card shard bad", "aria-label": `Shard ${master.node}` },
    make("h2", {}, master.node, make("span", { class: "state" }, isWell(master) ? "answers" : "needs a look")),
    master.error ? make("p", { class: "error" }, master.error) : null,
    make("dl", {}, facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    replicas.length > 0 ? make("ul", { class: "replicas" }, replicas.map(replicaLine)) : null,
  );
}

const isWell = (node) => !node.error && !node.indexing && node.has_reader !== false && !node.refuses && (node.worker === null || node.worker === "ready");

const replicaLine = (node) =>
  make("li", {}, "replica ", make("code", {}, node.node), " ", node.error ? make("span", { class: "error" }, node.error) : [` worker ${node.worker ?? "not known"}, PING `, latency(node)]);

function latency(node) {
  const known = latencies.get(node.node) ?? [];
  if (node.ms === null) return "no reply";
  return [`${node.ms.toFixed(2)} ms`, spark(known)];
}

/** The last latencies as a line; the highest reaches the top. */
function spark(values) {
  const drawn = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ class: "spark", width: 80, height: 16, viewBox: "0 0 80 16", "aria-hidden": "true" })) drawn.setAttribute(name, value);
  const top = Math.max(...values, 0.001);
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", values.map((value, n) => `${(80 * n) / (KEPT - 1)},${15 - (14 * value) / top}`).join(" "));
  drawn.append(line);
  return drawn;
}

look();
