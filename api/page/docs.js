// /openapi.json in Swagger UI, which comes with the package fastapi-swagger; below it the codes of all problems.

import { byId, make, problemCard } from "/static/dom.js";
import { client } from "/static/client.js";

function codesTable(codes) {
  const cells = ({ code, status, title, remedy }) => [make("code", {}, code), String(status), title, remedy].map((cell) => make("td", {}, cell));
  const heads = ["Code", "Status", "What", "Way out"].map((head) => make("th", { scope: "col" }, head));
  return make(
    "div",
    { class: "scroll", tabindex: "0" },
    make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, codes.map((one) => make("tr", { id: one.code }, cells(one))))),
  );
}

async function load() {
  try {
    const described = await client.call("GET", "/openapi.json");
    byId("docs").replaceChildren();
    byId("said").textContent = `${described.info.description} Version ${described.info.version}.`;
    window.SwaggerUIBundle({ spec: described, dom_id: "#docs", deepLinking: false, validatorUrl: null, docExpansion: "list", defaultModelsExpandDepth: 0 });
    byId("problems").replaceChildren(
      make("h2", {}, "Problems"),
      make("p", { class: "quiet" }, "Every error is application/problem+json (RFC 9457) with one of these codes, a detail and a remedy."),
      codesTable(described["x-problems"]),
    );
    if (location.hash) location.replace(location.hash); // its target exists only now
  } catch (problem) {
    byId("docs").replaceChildren(problemCard(problem, load));
  }
  byId("docs").setAttribute("aria-busy", "false");
}

/** Swagger UI has colours of its own for the dark, under a class of the page. */
const isDark = matchMedia("(prefers-color-scheme: dark)");

function shade() {
  const { theme } = document.documentElement.dataset;
  document.documentElement.classList.toggle("dark-mode", theme ? theme === "dark" : isDark.matches);
}

isDark.addEventListener("change", shade);
new MutationObserver(shade).observe(document.documentElement, { attributeFilter: ["data-theme"] });
shade();
load();
