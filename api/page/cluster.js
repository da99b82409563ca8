// The nodes, looked at every few seconds: a row each. Above them the questions of the last hour.

import { byId, count, make, percent, plural, quiet, size } from "/static/dom.js";
import { client } from "/static/client.js";

const EVERY = 2000; // ms between two looks
const SLOTS = 16384;
const HEADS = ["Node", "State", "Slots", "Documents", "Memory", "Restarts", "Questions", "Kept", "Reading", "PING"];

byId("said").textContent = "Looking at the nodes …";

async function look() {
  try {
    const { nodes, model, hour } = await client.call("GET", "/v1/cluster");
    show(nodes, model);
    showHour(hour);
  } catch (problem) {
    byId("said").textContent = `${problem.title}: ${problem.message}`;
  }
  byId("shards").setAttribute("aria-busy", "false");
  setTimeout(look, EVERY);
}

/** A bar for each minute, as high as it had questions, the refused ones on top; none for whoever may not see all. */
function showHour(hour) {
  const [answered, refused] = [0, 1].map((which) => hour.reduce((sum, one) => sum + one[which], 0));
  const most = Math.max(1, ...hour.map((one) => one[0] + one[1]));
  const bars = hour.map((one) => {
    const bar = make("i");
    bar.style.height = `${(100 * (one[0] + one[1])) / most}%`;
    bar.style.setProperty("--refused", `${(100 * one[1]) / (one[0] + one[1] || 1)}%`);
    return bar;
  });
  byId("hour").hidden = hour.length === 0;
  byId("hour").lastElementChild.replaceChildren(...bars);
  const told = `${plural(answered, "question")} answered, ${count(refused)} not`;
  byId("hour").firstElementChild.textContent = `The last hour: ${told}`;
}

function show(nodes, model) {
  const masters = nodes.filter((node) => node.role === "master");
  const served = masters.filter((node) => !node.error).reduce((sum, node) => sum + slotsOf(node), 0);
  const broken = nodes.filter((node) => node.error).length;
  byId("said").textContent = [
    `${plural(masters.length, "shard")}, ${plural(nodes.length - masters.length, "replica")}`,
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
  const own = ({ node, error, slots }) => slots.map(([first, last]) => ({ first, last, node, error }));
  const ranges = masters.flatMap(own).sort((one, other) => one.first - other.first);
  return ranges.map(({ first, last, node, error }) => {
    const slice = make("i", { class: error ? "free" : null, title: `${node}: ${first} to ${last}` });
    slice.style.flexGrow = String(last - first + 1);
    return slice;
  });
}

function row(node) {
  const isMaster = node.role === "master";
  const wrong = faults(node);
  const asked = node.answers_kept === null ? null : node.answers_kept + node.answers_read;
  const cells = make(
    "tr",
    { class: node.role },
    make("th", { scope: "row" }, make("code", {}, node.node), isMaster ? null : make("small", {}, "replica")),
    make("td", { class: wrong.length > 0 ? "state bad" : "state" }, wrong.join("; ") || "answers", below(node.error)),
    make("td", {}, isMaster ? `${count(slotsOf(node))}${node.moving ? `, ${count(node.moving)} moving` : ""}` : ""),
    make("td", {}, isMaster && !node.error && [count(node.documents), below(plural(node.passages, "passage"))]),
    told(node.memory, size),
    told(node.restarts, count),
    told(isMaster ? asked : null, count),
    told(isMaster && asked > 0 ? node.answers_kept / asked : null, percent),
    told(isMaster && node.answers_read > 0 ? node.reading_ms / node.answers_read : null, milliseconds),
    told(node.ms, milliseconds),
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

const below = (words) => (words ? make("small", {}, words) : null);

const told = (value, worded) => make("td", {}, value === null ? quiet("–") : worded(value));

look();
