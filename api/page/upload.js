// A file on its way, with progress: fetch can't tell how much of a body has left, XMLHttpRequest can.

import { withKey } from "/static/client.js";
import { Problem, problemOf } from "/static/shardqa.js";

/** PUTs a file into a corpus; `progress(share)` is called with 0 to 1. JSON of the reply; throws Problem, also once stopped. */
export function upload(file, corpus, progress, signal) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("PUT", `/v1/files/${encodeURIComponent(file.name)}?${new URLSearchParams({ corpus })}`);
    const headers = withKey({ Accept: "application/json, application/problem+json", "Content-Type": "application/octet-stream" });
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && progress(event.loaded / event.total));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) done(JSON.parse(request.responseText));
      else failed(problemOf(responseOf(request), request.responseText));
    });
    request.addEventListener("error", () => failed(new Problem({ title: "The server can’t be reached", detail: "The file got no reply.", code: "unreachable" })));
    request.addEventListener("abort", () => failed(new Problem({ title: "Cancelled", detail: "The file was not added.", code: "cancelled" })));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** What the request met, as fetch would have had it. */
function responseOf(request) {
  const type = request.getResponseHeader("Content-Type") ?? "";
  return new Response(null, { status: request.status, headers: { "Content-Type": type } });
}
