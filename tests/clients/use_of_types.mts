// What a TypeScript program writes with shardqa.js: tsc --strict checks it against shardqa.d.ts. Nothing runs.
import { Client, Problem, problemOf } from "shardqa";
import type { Answer, Candidate, DocumentFilter, Evidence, Part, Place, StoredDocument } from "shardqa";

const client: Client = new Client({ url: "http://localhost:8080", key: "sq-…", retries: 2 });
const filter: DocumentFilter = { title: ["Mill", null], metadata: { year: { gte: 1900 } }, all: [{ title: "Weir" }] };

export async function all(file: File, signal: AbortSignal): Promise<string[]> {
  const answer: Answer = await client.ask("When?", { corpus: "c", k: 3, answer_when: "sure", filter, signal });
  const place: Place | null = answer.place;
  const page: number | undefined = place?.page;
  const because: Evidence[] = answer.evidence;
  const nearest: Part | undefined = answer.no_answer ? answer.parts[0] : undefined;
  const best: Candidate | undefined = answer.n_best[0];
  const line: number = answer.lines.balanced + (best?.margin ?? 0) + (page ?? 0) + because.length + (nearest?.score ?? 0);
  const [asked] = await client.askBatch(["When?", { question: "Who?", corpus: "c" }], { signal });
  const found = await client.search("mill", { limit: 1, filter });
  const marked: string[] = found.passages.flatMap((one) => one.highlights.map((mark) => mark.term));
  const why: Answer = (await client.explain("When?", { k: 2 })).answer;
  await client.add({ text: "The mill is old.", metadata: { year: 1871 } });
  const { taken, refused } = await client.addMany([{ text: "The weir is new." }], { corpus: "c" });
  const { documents, skipped } = await client.addFile(file, { name: "inn.html", replace: true });
  const stored: StoredDocument = await client.document("mill", { corpus: "c" });
  for await (const one of client.documents({ corpus: "c", page: 100 })) marked.push(one.id, one.title);
  await client.delete("mill");
  const names: string[] = (await client.corpora()).corpora.map((one) => one.name);
  const left = (await client.drop("c")).removed + taken + refused + line + documents.length + skipped.length;
  const formats = await client.formats();
  return [...names, ...marked, stored.text, String(left), String(asked?.status), why.model, String(formats.length)];
}

export async function faults(reply: Response): Promise<Problem> {
  try {
    await client.corpus("c");
  } catch (fault) {
    if (fault instanceof Problem && fault.status === 404) return fault;
  }
  return problemOf(reply, await reply.text());
}

// @ts-expect-error a question is text
void client.ask(1);
// @ts-expect-error no such choice
void client.ask("When?", { answer_when: "always" });
// @ts-expect-error a document has text
void client.add({ id: "mill" });
// @ts-expect-error no such method
void client.generate("When?");
