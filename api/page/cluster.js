// The nodes, looked at every few seconds: a row each, with lines of what it was asked, how much of that it kept, and its times.

import { byId, count, make, percent, plural } from "/static/dom.js";
import { client } from "/static/client.js";

const EVERY = 2000; // ms between two looks
const KEPT = 40; // looks that are drawn
const SLOTS = 16384;
const SVG = "http://www.w3.org/2000/svg";
const HEADS = ["Node", "State", "Slots", "Documents", "Questions", "Kept", "Reading", "PING"];

const looks = new Map(); // node -> its last looks, oldest first

byId("said").textContent = "Looking at the nodes …";

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

/** Counts become what came since the last look. */
function note(node) {
  const known = looks.get(node.node) ?? [];
  const before = known.at(-1);
  const now = { at: performance.now(), node, ping: node.ms, questions: null, kept: null, reading: null };
  if (before && node.answers_read !== null && before.node.answers_read !== null) {
    const since = (field) => Math.max(0, node[field] - before.node[field]); // a restart begins anew
    const [kept, read] = [since("answers_kept"), since("answers_read")];
    now.questions = (kept + read) / ((now.at - before.at) / 1000);
    now.kept = kept + read > 0 ? kept / (kept + read) : null;
    now.reading = read > 0 ? since("reading_ms") / read : null;
  }
  looks.set(node.node, [...known, now].slice(-KEPT));
}

function show(nodes, model) {
  const masters = nodes.filter((node) => node.role === "master");
  const served = masters.filter((node) => !node.error).reduce((sum, node) => sum + slotsOf(node), 0);
  const broken = nodes.filter((node) => node.error).length;
  byId("said").textContent = [
    `${plural(masters.length, "shard", "shards")}, ${plural(nodes.length - masters.length, "replica", "replicas")}`,
    served === SLOTS ? "all slots are served" : `${count(SLOTS - served)} slots are served by nobody`,
    broken ? `${plural(broken, "node does", "nodes do")} not answer` : "every node answers",
    `reader ${model}`,
  ].join("; ");
  byId("slots").replaceChildren(...slotBar(masters));
  const head = make("tr", {}, HEADS.map((text) => make("th", { scope: "col" }, text)));
  const rows = masters.flatMap((master) => [master, ...nodes.filter((node) => node.master === master.node)]).map(row);
  byId("shards").replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, rows)));
}

const slotsOf = (node) => node.slots.reduce((sum, [first, last]) => sum + last - first + 1, 0);

function slotBar(masters) {
  const ranges = masters.flatMap((node) => node.slots.map(([first, last]) => ({ first, last, node: node.node, error: node.error }))).sort((one, other) => one.first - other.first);
  return ranges.map(({ first, last, node, error }) => {
    const slice = make("i", { class: error ? "free" : null, title: `${node}: ${first} to ${last}` });
    slice.style.flexGrow = String(last - first + 1);
    return slice;
  });
}

function row(node) {
  const isMaster = node.role === "master";
  const wrong = faults(node);
  const cells = make(
    "tr",
    { class: node.role },
    make("th", { scope: "row" }, make("code", {}, node.node), isMaster ? null : make("small", {}, "replica")),
    make("td", { class: wrong.length > 0 ? "state bad" : "state" }, wrong.length > 0 ? wrong.join("; ") : "answers", node.error ? make("small", {}, node.error) : null),
    make("td", {}, isMaster ? `${count(slotsOf(node))}${node.moving ? `, ${count(node.moving)} moving` : ""}` : ""),
    make("td", {}, isMaster && !node.error ? [count(node.documents), make("small", {}, plural(node.passages, "passage", "passages"))] : ""),
    isMaster ? [measured(node, "questions", (value) => `${value.toFixed(1)} /s`), measured(node, "kept", percent), measured(node, "reading", milliseconds)] : [1, 2, 3].map(() => make("td", {})),
    measured(node, "ping", milliseconds),
  );
  for (const [n, cell] of [...cells.children].entries()) cell.dataset.name = HEADS[n]; // where the head has no room
  return cells;
}

/** What is not as it should be, in people's words. */
function faults(node) {
  if (node.error) return ["does not answer"];
  return [
    node.indexing ? "still reads its passages" : "",
    node.has_reader === false ? "has no reader: run shardqa prepare" : "",
    node.refuses ? `takes no writes: ${node.refuses}` : "",
    node.worker !== null && node.worker !== "ready" ? `its worker is ${node.worker}` : "",
  ].filter(Boolean);
}

const milliseconds = (value) => `${value < 10 ? value.toFixed(1) : count(Math.round(value))} ms`;

/** The last value that is known, and all of them as a line. */
function measured(node, name, worded) {
  const values = looks.get(node.node).map((one) => one[name]);
  const last = values.findLast((value) => value !== null);
  return make("td", {}, last === undefined ? [make("span", { class: "quiet", "aria-hidden": "true" }, "–"), make("span", { class: "hidden" }, "none yet")] : [worded(last), spark(values)]);
}

/** Values as a line, the highest at the top; a look that had none leaves a gap. */
function spark(values) {
  const drawn = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ class: "spark", width: 72, height: 18, viewBox: "0 0 72 18", "aria-hidden": "true" })) drawn.setAttribute(name, value);
  const top = Math.max(...values, 0.001);
  const points = values.map((value, n) => (value === null ? null : `${(72 * n) / (KEPT - 1)},${16.5 - (15 * value) / top}`)).filter(Boolean);
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", points.length === 1 ? `${points[0]} ${points[0]}` : points.join(" "));
  drawn.append(line);
  return drawn;
}

look();
