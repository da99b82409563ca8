// What can be done with an answer: copy it, cite it, share it, ask for it from elsewhere, say whether it is right.

import { client } from "/static/client.js";
import { quoteOf } from "/static/shardqa.js";
import { foreign, make, plain } from "/static/dom.js";
import { judge, judged, questionsFile, unjudge } from "/static/storage.js";
import { placeText } from "/static/place.js";

const SAID = 1600; // ms for which a button says what it did

/** The row of buttons below an answer. */
export function actions(answer) {
  return make(
    "div",
    { class: "actions-row" },
    make("div", { class: "verbs", role: "group", "aria-label": "Use this answer" }, verbs(answer)),
    judgement(answer),
  );
}

function verbs(answer) {
  const found = [copier("Share", () => location.href)];
  if (!answer.no_answer) found.unshift(copier("Copy", () => answer.answer), copier("Cite", () => citation(answer)));
  return [...found, make("a", { href: `${location.href}&present` }, "Present"), elsewhere(answer)];
}

/** A button that copies a text and says so. */
export function copier(name, text) {
  const button = plain(name, click);
  async function click() {
    button.textContent = (await copy(text())) ? "Copied" : "Not allowed";
    setTimeout(() => (button.textContent = name), SAID);
  }
  return button;
}

/** Whether the text is in the clipboard; plain HTTP from another machine has none, there a selection must do. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { class: "hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function citation(answer) {
  return (answer.form === "span" ? [{ ...answer, text: answer.answer }] : answer.parts).map(cited).join("\n");
}

/** Words of the file in quotation marks; of a row the cells, and no characters, since the file has others. */
function cited(part) {
  const { written, title, document, place, start, end } = part;
  const characters = place?.cells ? "" : `characters ${start}–${end}`;
  const where = [title || document, toldBy(title, place) ? "" : placeText(place), characters].filter(Boolean);
  return `${written ? quoteOf(part) : `“${part.text}”`} (${where.join(", ")})`;
}

// ---- the same question from elsewhere

function elsewhere(answer) {
  const forms = [
    ["curl", curl(answer)],
    ["redis-cli", redisCli(answer)],
    ["Python", python(answer)],
  ].filter(([, text]) => text);
  return make(
    "details",
    { class: "elsewhere" },
    make("summary", {}, "Ask from …"),
    make(
      "div",
      { class: "forms" },
      forms.map(([name, text]) => {
        const title = make("h2", {}, name, copier("Copy", () => text));
        return make("div", {}, title, make("pre", { tabindex: "0" }, text));
      }),
    ),
  );
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function curl(answer) {
  const body = JSON.stringify({ question: answer.question, corpus: answer.corpus, filter: answer.filter });
  return `curl -s ${location.origin}/v1/ask -H 'content-type: application/json' \\\n  -d ${quoted(body)}`;
}

/** A shard's own candidates: the one whose reader found the answer, or any. */
function redisCli(answer) {
  const shard = answer.shards.find((one) => one.tag === answer.n_best[0]?.shard) ?? answer.shards[0];
  if (!shard?.key) return "";
  const port = shard.node.lastIndexOf(":");
  return `redis-cli -c -h ${shard.node.slice(0, port)} -p ${shard.node.slice(port + 1)} GET ${quoted(shard.key)}`;
}

function python(answer) {
  const ask = `client.ask(${JSON.stringify(answer.question)}, ${JSON.stringify(answer.corpus)})`;
  const client = `Client(${JSON.stringify(location.origin)})`;
  return `from shardqa import Client\n\nwith ${client} as client:\n    print(${ask}.answer)`;
}

// ---- right or wrong: lines of a questions.jsonl

function judgement(answer) {
  const { question, corpus } = answer;
  const file = plain("", () => save(corpus));
  const right = thumb("Right", "This is right", () => {
    keep(answer.no_answer ? [] : [answer.answer], answer.document);
  });
  const wrong = thumb("Wrong", "This is wrong", () => {
    form.hidden = false;
    better.focus();
  });
  const better = make("input", { id: "better", placeholder: "The right answer, as the documents word it" });
  const form = make(
    "form",
    { class: "better", hidden: true, submit },
    make("label", { for: "better" }, "What is right? Empty: the documents don’t say."),
    make("div", {}, better, make("button", { type: "submit" }, "Keep")),
  );

  function thumb(sign, name, pressed) {
    const button = make("button", { type: "button", class: "thumb", title: name, click }, sign);
    function click() {
      if (button.getAttribute("aria-pressed") !== "true") return pressed();
      unjudge(question, corpus);
      show();
    }
    return button;
  }

  function submit(event) {
    event.preventDefault();
    const text = better.value.trim();
    form.hidden = true;
    keep(text ? [text] : [], null);
  }

  function keep(answers, document) {
    judge({ question, corpus, document, answers });
    // what was found says something of its own corpus, what was not of each
    const corpora = document ? [answer.document_corpus] : corpus.split(",");
    for (const one of corpora) tell({ question, corpus: one, document, answers });
    show();
  }

  function show() {
    const found = judged().find((one) => one.question === question && one.corpus === corpus);
    const said = answer.no_answer ? [] : [answer.answer];
    const agrees = found && JSON.stringify(found.answers) === JSON.stringify(said);
    right.setAttribute("aria-pressed", String(Boolean(found) && agrees));
    wrong.setAttribute("aria-pressed", String(Boolean(found) && !agrees));
    const kept = judged().filter((one) => one.corpus === corpus).length;
    file.hidden = kept === 0;
    file.textContent = `Save ${kept} as questions.jsonl`;
  }

  show();
  return make("div", { class: "judge", role: "group", "aria-label": "Is it right?" }, right, wrong, file, form);
}

let isTold = false;

/** Whether the server takes feedback; where not, the browser alone keeps it. */
export function takeFeedback(is) {
  isTold = is;
}

function tell(judgement) {
  if (isTold) client.call("POST", "/v1/feedback", { body: judgement }).catch(() => {}); // it is kept here all the same
}

function save(corpus) {
  const address = URL.createObjectURL(new Blob([questionsFile(corpus)], { type: "application/x-ndjson" }));
  make("a", { href: address, download: "questions.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Whether a title says the place already: a row of a CSV file is a document of its own. */
const toldBy = (title, place) => Boolean(title) && title.endsWith(`, ${placeText(place)}`);

/** A place as people cite it, in a line of its own; none where the title says it. */
export const placeOf = (place, title = "") =>
  place && !toldBy(title, place) ? make("span", { class: "place" }, foreign(placeText(place))) : null;
