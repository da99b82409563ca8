// A file on its way, with progress: fetch can't tell how much of a body has left, XMLHttpRequest can.

import { Problem, problemOf, withKey } from "/static/http.js";

/** PUTs a file; `progress(share)` is called with 0 to 1. JSON of the reply; throws Problem. */
export function upload(path, file, progress) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("PUT", path);
    const headers = withKey({ Accept: "application/json, application/problem+json", "Content-Type": "application/octet-stream" });
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && progress(event.loaded / event.total));
    request.addEventListener("load", () => {
      const type = request.getResponseHeader("Content-Type") ?? "";
      if (request.status >= 200 && request.status < 300) done(JSON.parse(request.responseText));
      else failed(problemOf(request.status, request.statusText, type, request.responseText));
    });
    request.addEventListener("error", () => failed(Problem.unreachable()));
    request.send(file);
  });
}
