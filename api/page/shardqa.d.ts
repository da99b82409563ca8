/** Types of shardqa.js; the fields are those of the API's models (/openapi.json). */

export type Form = "auto" | "span" | "sentences" | "list";
export type AnswerWhen = "unsure" | "balanced" | "sure";
export type Metadata = Record<string, unknown>;

export interface Place {
  part?: string;
  page?: number;
  slide?: number;
  sheet?: string;
  row?: number;
  line?: number;
  time?: string;
  aside?: string;
  /** The row of a table that it stands in, name and value of each filled cell: the text there is written from them. */
  cells?: [string, string][];
  headings?: string[];
}

/** Sentences of the document that support an answer. */
export interface Evidence {
  text: string;
  start: number;
  end: number;
}

/** An exact excerpt of a document: a sentence, or several in a row. */
export interface Part {
  text: string;
  corpus: string;
  document: string;
  title: string;
  start: number;
  end: number;
  place: Place | null;
  score: number;
  /** `text` is a sentence that shardqa wrote of a row; `quoteOf` has the row. */
  written: boolean;
}

/** An excerpt as its file has it: of a row the cells. */
export function quoteOf(part: Pick<Part, "text" | "written" | "place">): string;

/** What one shard did for a question. */
export interface ShardUse {
  node: string;
  tag: string;
  passages: number;
  cached: boolean;
  key: string;
  us: Record<string, number>;
}

export interface Candidate {
  answer: string;
  score: number;
  corpus: string;
  document: string;
  title: string;
  start: number;
  end: number;
  passage: string;
  passage_start: number;
  shard: string;
  rank_score: number;
  margin: number;
  place: Place | null;
  metadata: Metadata;
  evidence: Evidence[];
  /** Worth showing to people beside the answer, or where there is none. */
  possible: boolean;
}

/** Offsets count code points, as Python does; JavaScript's strings count UTF-16 units. */
export interface Answer {
  question: string;
  /** That was asked; several with commas, as they can be asked again. */
  corpus: string;
  form: Exclude<Form, "auto">;
  /** A span's text; of other forms the texts of `parts`, a line each. */
  answer: string | null;
  /** Somebody has chosen this place for the question. */
  pinned: boolean;
  score: number;
  no_answer: boolean;
  needed: number;
  lines: Record<AnswerWhen, number>;
  /** The document's own. */
  document_corpus: string | null;
  document: string | null;
  title: string | null;
  start: number | null;
  end: number | null;
  passage: string | null;
  passage_start: number | null;
  place: Place | null;
  evidence: Evidence[];
  /** Sentences that support a span; sentences or items that are the answer; without one, the best that were read. */
  parts: Part[];
  metadata: Metadata | null;
  n_best: Candidate[];
  cached: boolean;
  cache: "process" | "redis" | null;
  partial: boolean;
  failed: string[];
  shards: ShardUse[];
  /** Words of the question that no passage has; none with an answer. */
  absent: string[];
  corrected: Record<string, string>;
  warnings: string[];
  model: string;
  timing: Record<string, number>;
}

export type Scalar = string | number | boolean | null;

export interface FilterBounds {
  gte?: string | number;
  gt?: string | number;
  lte?: string | number;
  lt?: string | number;
  exists?: boolean;
}

export type Condition = Scalar | Scalar[] | FilterBounds;

/** Conditions that all must hold. */
export interface DocumentFilter {
  title?: Condition;
  /** What the source begins with, as a folder's; of several, any. */
  source?: string | string[];
  metadata?: { [name: string]: Condition };
  all?: DocumentFilter[];
}

export interface AskOptions {
  /** One, several, or "*" for all that may be asked. */
  corpus?: string | string[];
  filter?: DocumentFilter;
  k?: number;
  n_best?: number;
  min_score?: number;
  answer_when?: AnswerWhen;
  form?: Form;
  fresh?: boolean;
}

/** A step on the way to an answer. */
export interface Step {
  step: "terms" | "rank" | "read";
  ms: number;
  passages: number;
  documents: string[];
  best: Candidate | null;
}

export interface Question extends AskOptions {
  question: string;
}

export interface Asked {
  status: number;
  answer: Answer | null;
  problem: ProblemDetails | null;
}

export interface NewDocument {
  text: string;
  id?: string;
  corpus?: string;
  title?: string;
  source?: string;
  metadata?: Metadata;
}

export interface Ingested {
  corpus: string;
  document: string;
  passages: number;
  characters: number;
  changed: boolean;
}

export interface Outcomes {
  results: { document: string | null; status: number; ingested?: Ingested; problem?: ProblemDetails }[];
  taken: number;
  refused: number;
}

export interface FileOutcome {
  file: string;
  documents: Ingested[];
  skipped: { place: string; reason: string }[];
  lost: { place: string; reason: string }[];
}

export interface SentFile {
  file: string;
  status: number;
  outcome?: FileOutcome;
  problem?: ProblemDetails;
}

/** Files that are read behind the reply: `stored` of the `texts` of `file` are there, beside `documents` of the files
 * before; with `ocr`, `page` of its `pages` are recognized. */
export interface Task {
  id: string;
  corpus: string;
  stage: "running" | "cancelling" | "done" | "cancelled" | "broken";
  total: number;
  file?: string;
  texts: number;
  stored: number;
  page: number;
  pages: number;
  documents: number;
  refused: number;
  results: SentFile[];
  detail?: string;
}

export interface StoredDocument {
  id: string;
  text: string;
  corpus: string;
  title: string;
  source: string;
  metadata: Metadata;
  places: [number, Place][];
  origin: string;
  /** `file` has what it was read from. */
  has_file: boolean;
}

export interface DocumentInfo {
  id: string;
  title: string;
  source: string;
  origin: string;
  metadata: Metadata;
  passages: number;
  bytes: number;
}

export interface CorpusInfo {
  name: string;
  documents: number;
  encoded: number | null;
  languages: boolean;
  passages: number;
  characters: number;
  bytes: number;
  epoch: string;
}

export interface Dropping {
  corpus: string;
  documents: number;
  removed: number;
  done: boolean;
}

export interface SearchResult {
  question: string;
  corpus: string;
  passages: {
    key: string;
    corpus: string;
    document: string;
    title: string;
    text: string;
    start: number;
    end: number;
    score: number;
    highlights: { start: number; end: number; term: string }[];
    place: Place | null;
    /** All that are in force in it, by characters of the document. */
    places: [number, Place][];
    /** Rows of `text` are sentences that shardqa wrote. */
    written: boolean;
    metadata: Metadata;
    [more: string]: unknown;
  }[];
  partial: boolean;
  failed: string[];
  timing: Record<string, number>;
}

export interface ProblemDetails {
  type?: string;
  instance?: string;
  title: string;
  detail: string;
  code: string;
  status: number;
  remedy: string;
  errors?: { at: string; message: string; got: string }[];
}

export class Problem extends Error implements ProblemDetails {
  constructor(details: Partial<ProblemDetails>);
  title: string;
  detail: string;
  code: string;
  status: number;
  remedy: string;
  errors: { at: string; message: string; got: string }[];
}

interface Signal {
  signal?: AbortSignal;
}

interface OfCorpus extends Signal {
  corpus?: string;
}

export class Client {
  constructor(options?: { url?: string; key?: string; retries?: number; fetch?: typeof fetch });
  ask(question: string, options?: AskOptions & Signal & { step?: (step: Step) => void }): Promise<Answer>;
  askBatch(questions: (string | Question)[], options?: Signal): Promise<Asked[]>;
  search(question: string, options?: OfCorpus & { limit?: number; filter?: DocumentFilter }): Promise<SearchResult>;
  explain(
    question: string,
    options?: OfCorpus & { k?: number; filter?: DocumentFilter },
  ): Promise<{ answer: Answer; [more: string]: unknown }>;
  add(document: NewDocument, options?: Signal): Promise<Ingested>;
  addMany(documents: NewDocument[], options?: OfCorpus): Promise<Outcomes>;
  addFile(
    file: Blob & { name?: string },
    options?: OfCorpus & { name?: string; replace?: boolean },
  ): Promise<FileOutcome>;
  addFiles(files: File[], options?: OfCorpus & { replace?: boolean; ocr?: boolean }): Promise<Task>;
  task(id: string, options?: Signal): Promise<Task>;
  tasks(options?: OfCorpus): Promise<Task[]>;
  cancel(id: string, options?: Signal): Promise<Task>;
  finished(id: string, options?: Signal & { step?: (task: Task) => void }): Promise<Task>;
  file(id: string, options?: OfCorpus): Promise<Blob>;
  page(id: string, options: OfCorpus & { start: number; end: number }): Promise<Blob>;
  document(id: string, options?: OfCorpus): Promise<StoredDocument>;
  delete(id: string, options?: OfCorpus): Promise<null>;
  documents(options?: OfCorpus & { page?: number }): AsyncGenerator<DocumentInfo>;
  corpora(options?: Signal): Promise<{
    corpora: CorpusInfo[];
    default: string;
    feedback: boolean;
    questions: boolean;
    partial: boolean;
    failed: string[];
  }>;
  corpus(name: string, options?: Signal): Promise<{ corpus: CorpusInfo | null; dropping: Dropping | null }>;
  drop(name: string, options?: Signal): Promise<Dropping>;
  formats(options?: Signal): Promise<{ title: string; suffixes: string[] }[]>;
  call(method: string, path: string, options?: Signal & { body?: unknown; file?: Blob }): Promise<any>;
}

/** The Problem that a Response and its text tell, for those who send by other means than fetch. */
export function problemOf(reply: Response, text: string): Problem;
