"""Models of the HTTP API beyond schema.py: requests, outcomes, problems. Clients share them.

A request's bounds stand in its schema only: the engine enforces them, with the same codes for every caller.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shardqa.answer_forms import FormChoice
from shardqa.answer_lines import AnswerWhen
from shardqa.checks import MAX_K, MAX_N_BEST, MAX_QUESTION, text_id
from shardqa.filters import DocumentFilter
from shardqa.schema import Answer, Corpora, Document, Ingested

MAX_QUESTIONS = 100  # of one batch
CORPUS: Any = Field(
    None,
    description="Where to look: a corpus, several (a list, or with commas), or * for all that you may ask. Without it, "
    "the one that is yours.",
    json_schema_extra={"examples": ["handbook", ["handbook", "minutes"], "*"]},
)


class Wording(BaseModel):
    """A question, or words to look for, and where."""

    model_config = ConfigDict(strict=True, extra="forbid")

    question: str = Field(description="One question, in plain words.", json_schema_extra={"maxLength": MAX_QUESTION})
    corpus: str | list[str] | None = CORPUS
    filter: DocumentFilter | None = Field(None, description="Documents that may answer, by title, source and metadata.")

    @field_validator("question")
    @classmethod
    def check_unicode(cls, question: str) -> str:
        """Refuses half a character: JSON can spell one, which no encoding can carry to a shard."""
        try:
            question.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate; send whole characters") from None
        return question


class Question(Wording):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who designed UTF-8?", "corpus": "seeds", "n_best": 3}]}
    )

    k: int | None = Field(None, description=f"Passages read, 1 to {MAX_K}. More finds more and takes longer.")
    n_best: int | None = Field(None, description=f"Candidates returned, 1 to {MAX_N_BEST}.")
    min_score: float | None = Field(
        None, allow_inf_nan=False, description="0 to 1: below it, no answer. Without it, the model's own threshold."
    )
    answer_when: AnswerWhen | None = Field(
        None, description="How sure an answer must be: unsure, balanced, sure. Without it, the server's setting."
    )
    form: FormChoice | None = Field(
        None, description="A span, sentences, a list, or auto: what suits the question. Without it, auto."
    )
    fresh: bool = Field(False, description="Leave the caches alone: compute the answer anew.")


class Questions(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    questions: list[Question] = Field(min_length=1, max_length=MAX_QUESTIONS)


class Asked(BaseModel):
    """The outcome of one question of a batch: one of the two."""

    status: int  # as if it had been asked alone
    answer: Answer | None = None
    problem: "Problem | None" = None


class Answers(BaseModel):
    """In the order of the request."""

    results: list[Asked]


class Search(Wording):
    limit: int = Field(10, description="Passages, 1 to 100.")


class Explain(Wording):
    k: int | None = Field(None, description=f"Passages ranked, 1 to {MAX_K}.")


class Feedback(BaseModel):
    """A reader's word on what is right to answer."""

    model_config = ConfigDict(strict=True, extra="forbid")

    question: str = Field(min_length=1, max_length=MAX_QUESTION)
    corpus: str | None = Field(None, description="Without it, the server's default corpus.")
    answers: list[str] = Field(max_length=10, description="As the documents word them; none: the documents don't say.")
    document: str | None = None


class AskedQuestion(BaseModel):
    """A question that was asked of a corpus, as it went last."""

    question: str
    refused: bool  # nothing was answered
    score: float
    times: int = 0


class AskedQuestions(BaseModel):
    questions: list[AskedQuestion]


class NewDocument(BaseModel):
    """A document to add; one of the same id and corpus is replaced."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"id": "mill", "corpus": "mine", "title": "The mill", "text": "Ada Holm built it in 1871."}]
        },
    )

    text: str
    id: str | None = Field(None, description="1 to 512 bytes; without it, a hash of the text.")
    corpus: str | None = Field(None, description="Without it, the one in the address, or the server's default corpus.")
    title: str = ""
    source: str = Field("", description="Where the text comes from, like an address.")
    metadata: dict[str, Any] = Field(default_factory=dict)

    def document(self, corpus: str) -> Document:
        return Document(
            id=self.id if self.id is not None else text_id(self.text),
            text=self.text,
            corpus=self.corpus if self.corpus is not None else corpus,
            title=self.title,
            source=self.source,
            metadata=self.metadata,
        )


class DocumentChanges(BaseModel):
    """What shall change of a document; its text stays."""

    model_config = ConfigDict(
        strict=True, extra="forbid", json_schema_extra={"examples": [{"metadata": {"year": 1871}}]}
    )

    title: str | None = None
    source: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict, description="Fields to set; null removes one.")

    def of(self, document: Document) -> Document:
        metadata = {**document.metadata, **self.metadata}
        left = {name: value for name, value in metadata.items() if self.metadata.get(name, value) is not None}
        heads = {name: value for name, value in (("title", self.title), ("source", self.source)) if value is not None}
        return document.model_copy(update={**heads, "metadata": left})


class StoredDocument(Document):
    """A document as it lies in its corpus."""

    has_file: bool = False  # GET /v1/files/{name} has the file that it was read from


class FieldError(BaseModel):
    at: str  # dotted path, like body.k
    message: str
    got: str  # the refused value as JSON-like text, cut at 80 characters


class Problem(BaseModel):
    """The problem details of RFC 9457, with a code for programs and a remedy for people."""

    type: str  # reference to the code's entry in /docs
    title: str
    status: int
    detail: str
    instance: str  # urn:uuid of the request, as in the header X-Request-Id and the log
    code: str
    remedy: str
    errors: list[FieldError] | None = None  # for invalid_request: every field at fault


class Outcome(BaseModel):
    """The outcome of one document of a list."""

    document: str | None = None  # its id; None, and left out of the reply, when it was not even a document
    status: int  # as if it had been sent alone: 201 added or changed, 200 unchanged, or the problem's
    ingested: Ingested | None = None
    problem: Problem | None = None


class Outcomes(BaseModel):
    """In the order of the request."""

    results: list[Outcome]
    taken: int
    refused: int


class LeftOut(BaseModel):
    """A part of a file that was not taken."""

    place: str
    reason: str


class FileOutcome(BaseModel):
    file: str
    documents: list[Ingested]
    skipped: list[LeftOut]  # documents that were not taken
    lost: list[LeftOut]  # parts of those that were


class SentFile(BaseModel):
    """The outcome of one file of a form: one of the two."""

    file: str
    status: int  # as if it had been sent alone
    outcome: FileOutcome | None = None
    problem: Problem | None = None


class SentFiles(BaseModel):
    """In the order of the form."""

    results: list[SentFile]
    taken: int
    refused: int


class Pin(BaseModel):
    """An answer that a corpus' owner has chosen."""

    model_config = ConfigDict(strict=True, extra="forbid")

    question: str = Field(max_length=MAX_QUESTION)
    document: str = Field(description="Its id.")
    quote: str = Field(min_length=1, max_length=4_000, description="What answers, exactly as the document has it.")


class CorpusWords(BaseModel):
    """Synonyms and pinned answers of a corpus, and whether its files are kept."""

    model_config = ConfigDict(strict=True, extra="forbid")

    synonyms: list[Annotated[str, Field(max_length=512)]] = Field(
        default_factory=list,
        max_length=1_000,
        description="Each `pto, paid time off` (both ways) or `k8s => kubernetes` (one way).",
    )
    pins: list[Pin] = Field(default_factory=list, max_length=1_000)
    keep_files: bool = Field(True, description="Files are kept beside their texts; those that are there stay.")


class StoredWords(CorpusWords):
    unmatched: list[str] = []  # questions of pins whose quote their document does not have


class Task(BaseModel):
    """A piece of work that goes on behind its reply."""

    id: str
    corpus: str
    stage: Literal["running", "cancelling", "done", "cancelled", "broken"] = "running"
    total: int  # files
    file: str | None = None  # that is under way
    texts: int = 0  # that it holds, once it is read: rows of a table, entries of an archive
    stored: int = 0  # of these, so far
    page: int = 0  # of the file's, recognized so far, where `ocr` was asked for
    pages: int = 0  # that it has
    documents: int = 0  # taken of the files before
    refused: int = 0  # files
    results: list[SentFile] = Field(default_factory=list)  # of the files read so far, in order
    detail: str | None = None  # of a broken one, why


class Tasks(BaseModel):
    tasks: list[Task]  # under way, without `results`


class FileFormat(BaseModel):
    title: str
    suffixes: list[str]


class Formats(BaseModel):
    formats: list[FileFormat]


class Listed(Corpora):
    default: str  # of a document that names none; it may not exist yet
    feedback: bool = False  # POST /v1/feedback is there
    questions: bool = False  # GET /v1/corpora/{corpus}/questions is there


class Version(BaseModel):
    version: str  # of shardqa
    api: Literal["v1"] = "v1"
    model: str  # the reader that is asked


class Health(BaseModel):
    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    status: Literal["ready", "degraded"]  # degraded: some shard can't answer, others can
    problems: list[str]
