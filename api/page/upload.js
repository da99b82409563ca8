// A file on its way, with progress: fetch can't tell how much of a body has left, XMLHttpRequest can. Then its task.

import { client, withKey } from "/static/client.js";
import { Problem, problemOf } from "/static/shardqa.js";

/** What a reason says of a picture in which text may be recognized; the button says it to people. */
export const BY_OCR = /;? 'shardqa ingest --ocr'.*$/;

const TRIES = 5; // where the server has as many tasks as it takes at once

/** Why a file, or parts of it, are not there. */
export const leftOut = ({ outcome, problem }) =>
  problem ? [problem.detail] : [...outcome.skipped, ...outcome.lost].map((one) => `${one.place}: ${one.reason}`);

/** Sends a file into a corpus, and follows its task: `sent(share)` is called with 0 to 1, then `step(task)`. The task
 * at its end, also of one that `signal` cancelled; throws Problem, also where it was stopped while it was sent. */
export async function upload(file, corpus, { sent, step, signal, ocr }) {
  const task = await begun(file, { corpus, ocr: ocr === true, wait: false }, sent, signal);
  const cancel = () => client.cancel(task.id).catch(() => {}); // it goes on then, and its end is told
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  const ended = await client.finished(task.id, { step });
  if (ended.stage === "broken") throw fault("The file was not read", ended.detail, "broken");
  return ended;
}

const fault = (title, detail, code) => new Problem({ title, detail, code });

async function begun(file, query, sent, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await sentOnce(file, query, sent, signal);
    } catch (problem) {
      if (problem.status !== 429 || attempt === TRIES || signal.aborted) throw problem;
      await new Promise((done) => setTimeout(done, Math.max(problem.retryAfter, 1000)));
    }
  }
}

function sentOnce(file, query, sent, signal) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/files?${new URLSearchParams(query)}`);
    const head = withKey({ Accept: "application/json, application/problem+json" });
    for (const [name, value] of Object.entries(head)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && sent(event.loaded / event.total));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) done(JSON.parse(request.responseText));
      else failed(problemOf(responseOf(request), request.responseText));
    });
    const unreachable = fault("The server can’t be reached", "The file got no reply.", "unreachable");
    request.addEventListener("error", () => failed(unreachable));
    request.addEventListener("abort", () => failed(fault("Cancelled", "The file was not added.", "cancelled")));
    signal.addEventListener("abort", () => request.abort());
    const form = new FormData();
    form.append("file", file, file.name);
    request.send(form);
  });
}

/** What the request met, as fetch would have had it. */
function responseOf(request) {
  const headers = ["Content-Type", "Retry-After"].map((name) => [name, request.getResponseHeader(name) ?? ""]);
  return new Response(null, { status: request.status, headers });
}
