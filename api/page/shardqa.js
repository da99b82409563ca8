// The client of shardqa's HTTP API, in one file without dependencies: browsers, Node 20+, Deno, Bun.
// Types are in shardqa.d.ts; the page of the API itself uses it.

const BUSY = new Set([429, 503, 504]); // what passes: the same call may succeed soon
const FIRST_PAUSE = 200; // ms; doubles with each failure
const FIRST_LOOK = 100; // ms after a task began, until it is looked at again; doubles, too
const LAST_LOOK = 1000; // ms between two looks at most

/** An excerpt as its file has it: of a row the cells, since the text there is a sentence that shardqa wrote. */
export function quoteOf({ text, written, place }) {
  if (!written) return text;
  const [first, ...others] = place.cells;
  return others.length === 0 ? first.filter(Boolean).join(": ") : place.cells.map(([, value]) => value).join(" · ");
}

/** A failure of any kind, as RFC 9457 has it: `code` is for programs, `remedy` for people. */
export class Problem extends Error {
  constructor({ title, detail, code, status = 0, remedy = "", errors = [] }) {
    super(detail);
    this.name = "Problem";
    Object.assign(this, { title, detail, code, status, remedy, errors });
  }
}

/** Calls the API at `url`; without one, at the address of the page. */
export class Client {
  #url;
  #key;
  #fetch;
  #retries;

  constructor({ url = "", key, retries = 3, fetch = globalThis.fetch } = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#fetch = fetch.bind(globalThis);
    this.#retries = retries;
  }

  /** The answer to one question; `options` are AskOptions of shardqa.d.ts. `step(one)` is called on the way. */
  ask(question, { signal, step, ...options } = {}) {
    return this.call("POST", "/v1/ask", { body: { question, ...options }, as: step, signal });
  }

  /** Up to a hundred questions at once, each with its answer or its problem. */
  async askBatch(questions, { signal } = {}) {
    const body = { questions: questions.map((one) => (typeof one === "string" ? { question: one } : one)) };
    return (await this.call("POST", "/v1/ask/batch", { body, signal })).results;
  }

  /** The passages that rank best; nothing is read. */
  search(question, { signal, ...options } = {}) {
    return this.call("POST", "/v1/search", { body: { question, ...options }, signal });
  }

  /** The answer, and everything it was made of. */
  explain(question, { signal, ...options } = {}) {
    return this.call("POST", "/v1/explain", { body: { question, ...options }, signal });
  }

  /** Puts one document: {text, id?, corpus?, title?, source?, metadata?}. */
  add(document, { signal } = {}) {
    return this.call("POST", "/v1/documents", { body: document, signal });
  }

  /** Puts many in one request; each has an outcome. */
  addMany(documents, { corpus, signal } = {}) {
    return this.call("POST", `/v1/documents${query({ corpus })}`, { body: documents, signal });
  }

  /** Puts a File or Blob as it is, read by the suffix of its name. */
  addFile(file, { corpus, name = file.name, replace, signal } = {}) {
    const path = `/v1/files/${encodeURIComponent(name)}${query({ corpus, replace })}`;
    return this.call("PUT", path, { file, signal });
  }

  /** Sends Files, and replies with a task while they are read: `finished` awaits its end. */
  addFiles(files, { corpus, replace, ocr, signal } = {}) {
    const form = new FormData();
    for (const file of files) form.append("file", file, file.name);
    return this.call("POST", `/v1/files${query({ corpus, replace, ocr, wait: false })}`, { file: form, signal });
  }

  /** How far a task is, and the outcome of each file that is read. */
  task(id, { signal } = {}) {
    return this.call("GET", `/v1/tasks/${encodeURIComponent(id)}`, { signal });
  }

  /** The tasks of a corpus that are under way, without their files' outcomes. */
  async tasks({ corpus, signal } = {}) {
    return (await this.call("GET", `/v1/tasks${query({ corpus })}`, { signal })).tasks;
  }

  /** Ends a task within seconds; what it has stored stays. */
  cancel(id, { signal } = {}) {
    return this.call("DELETE", `/v1/tasks/${encodeURIComponent(id)}`, { signal });
  }

  /** A task once it has ended: done, cancelled or broken. `step(task)` is called as it goes on. */
  async finished(id, { step = () => {}, signal } = {}) {
    for (let wait = FIRST_LOOK; ; wait = Math.min(2 * wait, LAST_LOOK)) {
      const task = await this.task(id, { signal });
      if (task.stage !== "running" && task.stage !== "cancelling") return task;
      step(task);
      await pause(wait, signal);
    }
  }

  /** The file that a document was read from, as a Blob. */
  file(id, { corpus, signal } = {}) {
    return this.call("GET", `/v1/files/${encodeURIComponent(id)}${query({ corpus })}`, { as: "blob", signal });
  }

  /** The page of a PDF that these characters stand on, as a Blob of a PNG with them marked. */
  page(id, { corpus, start, end, signal } = {}) {
    const path = `/v1/pages/${encodeURIComponent(id)}${query({ corpus, start, end })}`;
    return this.call("GET", path, { as: "blob", signal });
  }

  /** One document whole. */
  document(id, { corpus, signal } = {}) {
    return this.call("GET", documentPath(id, corpus), { signal });
  }

  /** Removes a document with all that belongs to it. */
  delete(id, { corpus, signal } = {}) {
    return this.call("DELETE", documentPath(id, corpus), { signal });
  }

  /** All documents of a corpus, page by page. */
  async *documents({ corpus, page = 100, signal } = {}) {
    let cursor;
    do {
      const found = await this.call("GET", `/v1/documents${query({ corpus, cursor, limit: page })}`, { signal });
      yield* found.documents;
      cursor = found.cursor ?? undefined;
    } while (cursor !== undefined);
  }

  corpora({ signal } = {}) {
    return this.call("GET", "/v1/corpora", { signal });
  }

  corpus(name, { signal } = {}) {
    return this.call("GET", `/v1/corpora/${encodeURIComponent(name)}`, { signal });
  }

  /** Ends a corpus; the shards go on removing it. */
  drop(name, { signal } = {}) {
    return this.call("DELETE", `/v1/corpora/${encodeURIComponent(name)}`, { signal });
  }

  async formats({ signal } = {}) {
    return (await this.call("GET", "/v1/formats", { signal })).formats;
  }

  /** JSON of a reply, or null of an empty one. Throws Problem; an aborted call throws what fetch throws. */
  async call(method, path, { body, file, as, signal } = {}) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, path, { body, file, as, signal });
      } catch (error) {
        if (!(error instanceof Problem) || !BUSY.has(error.status) || attempt >= this.#retries) throw error;
        await pause(Math.max(error.retryAfter, FIRST_PAUSE * 2 ** attempt * (0.5 + Math.random() / 2)), signal);
      }
    }
  }

  async #once(method, path, { body, file, as, signal }) {
    const isTold = typeof as === "function"; // as events
    const headers = { Accept: isTold ? "text/event-stream" : "application/json, application/problem+json" };
    if (this.#key) headers.Authorization = `Bearer ${this.#key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    else if (file !== undefined && !(file instanceof FormData)) headers["Content-Type"] = "application/octet-stream";
    const sent = body !== undefined ? JSON.stringify(body) : file;
    let reply;
    try {
      const keepalive = method === "DELETE"; // also by a page that is being left
      reply = await this.#fetch(this.#url + path, { method, headers, body: sent, signal, keepalive });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem({
        title: "The server can’t be reached",
        detail: "The request got no reply.",
        code: "unreachable",
        remedy: "Check that the server runs and that you are connected, then try again.",
      });
    }
    if (reply.ok && as === "blob") return reply.blob();
    if (reply.ok && isTold) return lastOf(reply, as);
    const text = await reply.text();
    if (!reply.ok) throw problemOf(reply, text);
    return text ? JSON.parse(text) : null;
  }
}

/** The answer at the end of a reply of events; `step` is called with each before it. */
async function lastOf(reply, step) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) throw new Problem({ title: "The reply broke off", detail: "No answer came.", code: "unreachable" });
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const [, name, data] of events.map((one) => one.match(/^event: (.*)\ndata: (.*)$/))) {
      if (name === "problem") throw new Problem(JSON.parse(data));
      if (name === "answer") return JSON.parse(data);
      step(JSON.parse(data));
    }
  }
}

/** The Problem that a Response and its text tell, for those who send by other means than fetch. */
export function problemOf(reply, text) {
  const isProblem = (reply.headers.get("Content-Type") ?? "").startsWith("application/problem+json");
  const problem = new Problem(
    isProblem
      ? JSON.parse(text)
      : {
          title: `The reply has status ${reply.status}`,
          detail: text.slice(0, 300) || reply.statusText || "It says no more.",
          code: `http_${reply.status}`,
          status: reply.status,
        },
  );
  problem.retryAfter = 1000 * (Number(reply.headers.get("Retry-After")) || 0);
  return problem;
}

/** `?a=1&b=2` of what is given. */
function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** The address of a document in the API; ids hold any character. */
function documentPath(id, corpus) {
  return `/v1/documents/${encodeURIComponent(id)}${query({ corpus })}`;
}

function pause(ms, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), fail(signal.reason)), { once: true });
  });
}
