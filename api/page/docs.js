// /openapi.json as a page: operations with parameters, bodies, replies and a curl line; then the problems' codes.

import { byId, make, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";

let schemas = {};

const nameOf = (reference) => reference.split("/").pop();
const resolve = (schema) => (schema?.$ref ? schemas[nameOf(schema.$ref)] : schema);

/** A schema in a few words: "string or null", "list of Candidate". */
function typeOf(schema) {
  if (!schema) return "nothing";
  if (schema.$ref) return nameOf(schema.$ref);
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties?.type) return `object of ${typeOf(schema.additionalProperties)}`;
  return schema.type ?? "anything";
}

/** Every object schema that `schema` leads to, itself first: [[name, schema]]. */
function objectsOf(schema, found = new Map()) {
  if (!schema) return found;
  const object = resolve(schema);
  if (schema.$ref && !found.has(nameOf(schema.$ref))) {
    found.set(nameOf(schema.$ref), object);
    Object.values(object.properties ?? {}).forEach((property) => objectsOf(property, found));
  }
  for (const part of [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), schema.items]) objectsOf(part, found);
  return found;
}

function rows(head, lines) {
  return make(
    "div",
    { class: "scroll" },
    make("table", {}, make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, lines)),
  );
}

const row = (cells, attributes = {}) => make("tr", attributes, cells.map((cell) => make("td", {}, cell)));

function fieldTable(schema) {
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    row([name, typeOf(field), fieldNote(field, required.has(name))]),
  );
  return rows(["Field", "Type", ""], lines);
}

function fieldNote(field, required) {
  const fallback = field.default === undefined || field.default === null || field.default === "" ? "" : `Default ${JSON.stringify(field.default)}.`;
  return [field.description ?? "", required || field.default !== undefined ? "" : "Optional.", fallback].filter(Boolean).join(" ");
}

function schemaTables(title, schema) {
  return [...objectsOf(schema)].flatMap(([name, object], index) => [
    make("h3", {}, index === 0 ? `${title}: ${typeOf(schema)}` : name),
    fieldTable(object),
  ]);
}

/** Text with `code` in it. */
const prose = (text) => text.split("`").map((part, n) => (n % 2 === 1 ? make("code", {}, part) : part));

function curl(method, path, operation) {
  const example = resolve(operation.requestBody?.content?.["application/json"]?.schema);
  const one = resolve(example?.oneOf?.[0]) ?? example;
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === "query" && parameter.required);
  const suffix = query.map((parameter) => `${parameter.name}=Who+designed+UTF-8%3F`).join("&");
  const address = `${location.origin}${path.replace("{id}", "mill").replace("{name}", "handbook.pdf")}${suffix ? `?${suffix}` : ""}`;
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `;
  if (operation.requestBody?.content?.["application/octet-stream"]) return `curl -T handbook.pdf '${address}'`;
  const body = one?.examples ? ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(one.examples[0])}'` : "";
  return `curl ${verb}'${address}'${body}`;
}

function operationCard(method, path, operation) {
  const parameters = (operation.parameters ?? []).map((parameter) =>
    row([parameter.name, typeOf(parameter.schema), [parameter.required ? "Required." : "", parameter.description ?? ""].join(" ").trim()]),
  );
  const replies = Object.entries(operation.responses).filter(([status]) => status !== "default");
  const reply = replies.map(([, one]) => one.content?.["application/json"]?.schema).find((schema) => schema && objectsOf(schema).size > 0);
  return make(
    "section",
    { class: "card operation", id: operation.operationId },
    make("div", {}, make("span", { class: "method" }, method.toUpperCase()), make("span", { class: "path" }, path)),
    make("h2", {}, operation.summary),
    operation.description ? operation.description.split("\n\n").map((text) => make("p", {}, ...prose(text))) : null,
    make("pre", { tabindex: "0" }, curl(method, path, operation)),
    parameters.length > 0 ? [make("h3", {}, "Parameters"), rows(["Name", "Type", ""], parameters)] : null,
    operation.requestBody?.content["application/json"] ? schemaTables("Body", operation.requestBody.content["application/json"].schema) : null,
    reply ? schemaTables("Reply", reply) : null,
    make("h3", {}, "Status"),
    rows(["Status", ""], replies.map(([status, one]) => row([status, one.description]))),
  );
}

function codesSection(codes) {
  const lines = codes.map((code) => row([code.code, String(code.status), code.title, code.remedy], { id: code.code }));
  return make(
    "section",
    { class: "card codes" },
    make("h2", {}, "Problems"),
    make("p", { class: "quiet" }, "Every error is application/problem+json (RFC 9457) with one of these codes, a detail and a way out."),
    rows(["Code", "Status", "What", "Way out"], lines),
  );
}

async function load() {
  const main = byId("docs");
  try {
    const described = await client.call("GET", "/openapi.json");
    schemas = described.components.schemas;
    const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
    );
    const contents = operations.map(({ method, path, operation }) =>
      make("li", {}, make("a", { href: `#${operation.operationId}` }, make("span", { class: "method" }, method.toUpperCase()), make("span", { class: "path" }, path))),
    );
    main.replaceChildren(
      make("div", { class: "intro" }, make("h1", {}, "The HTTP API"), make("p", {}, described.info.description)),
      make("ul", { class: "toc" }, contents),
      ...operations.map(({ method, path, operation }) => operationCard(method, path, operation)),
      codesSection(described["x-problems"]),
    );
    if (location.hash) location.replace(location.hash); // its target exists only now
  } catch (problem) {
    main.replaceChildren(problemCard(problem, load));
  }
  main.setAttribute("aria-busy", "false");
}

load();
