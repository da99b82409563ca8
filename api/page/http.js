// The API, with every failure as one kind of error: a Problem (RFC 9457).

export class Problem extends Error {
  constructor({ title, detail, code, status = 0, remedy = "" }) {
    super(detail);
    Object.assign(this, { title, detail, code, status, remedy });
  }
}

/** JSON of a reply, or null of an empty one. Throws Problem; an aborted request throws what fetch throws. */
export async function call(method, path, { body, file, signal } = {}) {
  const options = { method, signal, headers: { Accept: "application/json, application/problem+json" } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  } else if (file !== undefined) {
    options.body = file;
    options.headers["Content-Type"] = "application/octet-stream";
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      title: "The server can’t be reached",
      detail: "The request got no reply.",
      code: "unreachable",
      remedy: "Check that the server runs and that you are connected, then try again.",
    });
  }
  const text = await reply.text();
  if (!reply.ok) throw problemOf(reply, text);
  return text ? JSON.parse(text) : null;
}

function problemOf(reply, text) {
  if ((reply.headers.get("Content-Type") ?? "").startsWith("application/problem+json")) return new Problem(JSON.parse(text));
  return new Problem({
    title: `The reply has status ${reply.status}`,
    detail: text.slice(0, 300) || reply.statusText || "It says no more.",
    code: `http_${reply.status}`,
    status: reply.status,
  });
}

/** The address that a file is put to. */
export const filePath = (corpus, name) => `/v1/files/${encodeURIComponent(name)}?${new URLSearchParams({ corpus })}`;

/** The address of a document in the API; ids hold any character. */
export const documentPath = (corpus, id) => `/v1/documents/${encodeURIComponent(id)}?${new URLSearchParams({ corpus })}`;
