// A file on its way, with progress: fetch can't tell how much of a body has left, XMLHttpRequest can. Then its task.

import { client, withKey } from "/static/client.js";
import { Problem, problemOf } from "/static/shardqa.js";

const TRIES = 5; // where the server has as many tasks as it takes at once

/** Sends a file into a corpus, and follows its task: `sent(share)` is called with 0 to 1, then `step(task)`. The task at
 * its end, also of one that `signal` cancelled; throws Problem, also where it was stopped while it was sent. */
export async function upload(file, corpus, { sent, step, signal }) {
  const task = await begun(file, corpus, sent, signal);
  const cancel = () => client.cancel(task.id).catch(() => {}); // it goes on then, and its end is told
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  const ended = await client.finished(task.id, { step });
  if (ended.stage === "broken") throw new Problem({ title: "The file was not read", detail: ended.detail, code: "broken" });
  return ended;
}

async function begun(file, corpus, sent, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await sentOnce(file, corpus, sent, signal);
    } catch (problem) {
      if (problem.status !== 429 || attempt === TRIES || signal.aborted) throw problem;
      await new Promise((done) => setTimeout(done, Math.max(problem.retryAfter, 1000)));
    }
  }
}

function sentOnce(file, corpus, sent, signal) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/files?${new URLSearchParams({ corpus, wait: false })}`);
    for (const [name, value] of Object.entries(withKey({ Accept: "application/json, application/problem+json" }))) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && sent(event.loaded / event.total));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) done(JSON.parse(request.responseText));
      else failed(problemOf(responseOf(request), request.responseText));
    });
    request.addEventListener("error", () => failed(new Problem({ title: "The server can’t be reached", detail: "The file got no reply.", code: "unreachable" })));
    request.addEventListener("abort", () => failed(new Problem({ title: "Cancelled", detail: "The file was not added.", code: "cancelled" })));
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
