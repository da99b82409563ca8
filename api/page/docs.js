// /openapi.json in Swagger UI, which comes with the package fastapi-swagger; below it the codes of all problems.

import { byId, make, problemCard, table } from "/static/dom.js";
import { client } from "/static/client.js";

const codeRow = ({ code, status, title, remedy }) => [make("code", { id: code }, code), String(status), title, remedy];

async function load() {
  try {
    const described = await client.call("GET", "/openapi.json");
    byId("docs").replaceChildren();
    byId("said").textContent = `${described.info.description} Version ${described.info.version}.`;
    const look = { deepLinking: false, validatorUrl: null, docExpansion: "list", defaultModelsExpandDepth: 0 };
    window.SwaggerUIBundle({ spec: described, dom_id: "#docs", ...look });
    byId("problems").replaceChildren(
      make("h2", {}, "Problems"),
      make("p", { class: "quiet" }, "Every error is application/problem+json (RFC 9457) with one of these codes."),
      table(["Code", "Status", "What", "Way out"], described["x-problems"].map(codeRow)),
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
