// A small layered graph as SVG: question, words, passages, documents, shards and answers, each kind in a column.

const SVG = "http://www.w3.org/2000/svg";
const KINDS = { question: "question", term: "its words", passage: "passages", document: "documents", shard: "shards" }; // a column each
const COLUMN = 145; // px between columns: five fit on a desktop, a phone scrolls
const ROW = 34; // px between nodes of a column
const BOX = { width: 126, height: 24 };
const LONGEST = 15; // characters of a label
const MARGIN = 4;
const HEAD = 22; // px of the names above the columns

function element(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const cut = (label) => {
  const points = [...label];
  return points.length <= LONGEST ? label : `${points.slice(0, LONGEST - 1).join("")}…`;
};

/** The picture in a box that scrolls; its title tells what it shows. Passages and documents lead to their text. */
export function graphPicture({ nodes, edges }, { corpus, question, passages }) {
  const columns = Object.keys(KINDS).map((kind) => nodes.filter((node) => node.kind === kind)).filter((column) => column.length > 0);
  const rows = Math.max(1, ...columns.map((column) => column.length));
  const places = new Map();
  for (const [x, column] of columns.entries()) {
    const above = ((rows - column.length) * ROW) / 2;
    for (const [y, node] of column.entries()) places.set(node.id, { x: MARGIN + x * COLUMN, y: HEAD + MARGIN + above + y * ROW });
  }
  const size = { width: 2 * MARGIN + (columns.length - 1) * COLUMN + BOX.width, height: HEAD + 2 * MARGIN + (rows - 1) * ROW + BOX.height };
  const heaviest = Math.max(...edges.map((edge) => edge.weight), 1e-9);
  const drawn = edges.filter((edge) => places.has(edge.source) && places.has(edge.target));
  const picture = element(
    "svg",
    { ...size, viewBox: `0 0 ${size.width} ${size.height}`, class: "graph", role: "group", "aria-label": "From the question over its words to passages, documents and shards" },
    ...drawn.map((edge) => line(places.get(edge.source), places.get(edge.target), edge.weight / heaviest)),
    ...columns.map(([node]) => element("text", { x: String(places.get(node.id).x), y: "14", class: "kind" }, KINDS[node.kind])),
    ...columns.flat().map((node) => linked(node, box(node, places.get(node.id)), { corpus, question, passages })),
  );
  const legend = document.createElement("p");
  legend.className = "quiet";
  legend.textContent = "The thicker a line, the more it adds to the score.";
  const scroll = document.createElement("div");
  scroll.className = "scroll picture";
  scroll.tabIndex = 0;
  scroll.append(picture);
  const whole = document.createElement("div");
  whole.append(scroll, legend);
  return whole;
}

/** A node of a document's in a link to it, to the passage where it is one. */
function linked(node, drawn, { corpus, question, passages }) {
  const found = passages.find((one) => (node.kind === "passage" ? one.key : node.kind === "document" ? `document ${one.corpus} ${one.document}` : null) === node.id);
  if (!found) return drawn;
  const place = node.kind === "passage" ? { start: found.start, end: found.end } : {};
  return element("a", { href: `/document?${new URLSearchParams({ corpus: found.corpus, id: found.document, q: question, asked: corpus, ...place })}` }, drawn);
}

function line(from, to, weight) {
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  return element("path", { d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`, "stroke-width": String(1 + 4 * weight), "stroke-opacity": String(0.35 + 0.65 * weight), class: "edge" });
}

function box(node, place) {
  const text = element("text", { x: String(place.x + 9), y: String(place.y + 16) }, cut(node.label));
  return element("g", { class: `node of-kind-${node.kind}` }, element("title", {}, node.label), element("rect", { x: place.x, y: place.y, rx: "7", ...BOX }), text);
}
