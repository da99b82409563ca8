// A small layered graph as SVG: question, words, passages, documents, shards and answers, each kind in a column.

const SVG = "http://www.w3.org/2000/svg";
const KINDS = ["question", "term", "passage", "document", "shard"];
const COLUMN = 145; // px between columns: five fit on a desktop, a phone scrolls
const ROW = 34; // px between nodes of a column
const BOX = { width: 126, height: 24 };
const LONGEST = 17; // characters of a label
const MARGIN = 4;

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

/** The picture in a box that scrolls; its title tells what it shows. */
export function graphPicture({ nodes, edges }) {
  const columns = KINDS.map((kind) => nodes.filter((node) => node.kind === kind)).filter((column) => column.length > 0);
  const rows = Math.max(1, ...columns.map((column) => column.length));
  const places = new Map();
  for (const [x, column] of columns.entries()) {
    const above = ((rows - column.length) * ROW) / 2;
    for (const [y, node] of column.entries()) places.set(node.id, { x: MARGIN + x * COLUMN, y: MARGIN + above + y * ROW });
  }
  const size = { width: 2 * MARGIN + (columns.length - 1) * COLUMN + BOX.width, height: 2 * MARGIN + (rows - 1) * ROW + BOX.height };
  const heaviest = Math.max(...edges.map((edge) => edge.weight), 1e-9);
  const drawn = edges.filter((edge) => places.has(edge.source) && places.has(edge.target));
  const picture = element(
    "svg",
    { ...size, viewBox: `0 0 ${size.width} ${size.height}`, class: "graph", role: "img", "aria-label": "From the question over its words to passages, documents and shards" },
    ...drawn.map((edge) => line(places.get(edge.source), places.get(edge.target), edge.weight / heaviest)),
    ...columns.flat().map((node) => box(node, places.get(node.id))),
  );
  const scroll = document.createElement("div");
  scroll.className = "scroll picture";
  scroll.tabIndex = 0;
  scroll.append(picture);
  return scroll;
}

function line(from, to, weight) {
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  return element("path", { d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`, "stroke-width": String(0.75 + 3 * weight), class: "edge" });
}

function box(node, place) {
  const text = element("text", { x: String(place.x + 9), y: String(place.y + 16) }, cut(node.label));
  return element("g", { class: `node of-kind-${node.kind}` }, element("title", {}, node.label), element("rect", { x: place.x, y: place.y, rx: "7", ...BOX }), text);
}
