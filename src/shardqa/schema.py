"""Models of what goes in and comes out: documents, ranked passages, answers.

Offsets are character indices (Python str) of the document's text, half open: `text[start:end] == answer`.
The same models are the HTTP replies, the CLI's `--json` and the values of `ask:` keys.
"""

from html import escape
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, computed_field

from shardqa.answer_forms import Form
from shardqa.answer_lines import Lines
from shardqa.places import Mark, Place, row_of


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    text: str
    corpus: str | None = None
    title: str = ""
    source: str = ""
    metadata: dict[str, Any] = Field(default_factory=dict)
    places: list[Mark] = Field(default_factory=list)  # where its parts stand in the file it came from, rising
    origin: str = ""  # file or address that the loader read it from, by which it is known again; empty: put by hand


class Ingested(BaseModel):
    """The outcome of putting one document."""

    corpus: str
    document: str
    passages: int
    characters: int
    changed: bool  # False: the same text was already there, nothing was written


class CorpusInfo(BaseModel):
    name: str
    documents: int
    passages: int
    characters: int
    bytes: int  # of its documents' texts
    epoch: str  # digest of all shards' epochs; changes with every change of the corpus
    encoded: int | None = None  # passages that have a vector; None without an encoder, or where it is off
    languages: bool = False  # the pair of many languages reads it


class Dropping(BaseModel):
    """A corpus that was dropped: it can't be asked, and its documents are being removed in slices."""

    corpus: str
    documents: int  # it had when it was dropped
    removed: int  # so far; where a node was restarted, since then
    done: bool


class OneCorpus(BaseModel):
    """A corpus that can be asked, or one that was dropped."""

    corpus: CorpusInfo | None
    dropping: Dropping | None
    partial: bool  # some shard did not answer: the sizes are without its documents
    failed: list[str]


class DocumentInfo(BaseModel):
    """A document in a list."""

    id: str
    title: str
    source: str
    origin: str
    metadata: dict[str, Any]
    passages: int
    bytes: int  # of its text


class DocumentList(BaseModel):
    """A page of a corpus' documents, in an order that stays while slots move."""

    corpus: str
    documents: list[DocumentInfo]
    cursor: str | None  # of the next page; None: this is the last
    partial: bool  # some shard did not answer: its documents are left out
    failed: list[str]


class Corpora(BaseModel):
    """The corpora that can be asked."""

    corpora: list[CorpusInfo]
    partial: bool  # some shard did not answer, or reads its documents still: the sizes are without those
    failed: list[str]  # such nodes


class Facet(BaseModel):
    name: str  # of a folder with its slash: what sources begin with
    documents: int


class Facets(BaseModel):
    """Documents of a corpus by folder of their source and by tag (`metadata.tags`), most first."""

    corpus: str
    documents: int
    folders: list[Facet]  # within one another, too
    tags: list[Facet]
    partial: bool
    failed: list[str]


class ShardInfo(BaseModel):
    """A master of the cluster, as this process sees it."""

    node: str  # host:port
    tag: str | None  # hash tag of the shard; None when its worker did not answer
    error: str | None = None
    indexing: bool = False  # it reads its passages into its index, and can't be asked until that is done
    passages: int = 0  # in its index
    refuses: str | None = None  # why it stores nothing now, in Redis' words: it answers, and takes no documents


class Suggestions(BaseModel):
    corpus: str
    suggestions: list[str]  # titles, then headings, each once


class NodeInfo(BaseModel):
    """A node of the cluster, master or replica, as the masters and it itself tell."""

    node: str  # host:port
    role: Literal["master", "replica"]
    master: str | None = None  # whose replica it is
    slots: list[tuple[int, int]] = Field(default_factory=list)  # ranges, both ends included
    moving: int = 0  # slots on their way here or away
    ms: float | None = None  # a PING just now; None where it did not come back
    tag: str | None = None
    indexing: bool = False
    documents: int = 0
    passages: int = 0
    has_reader: bool | None = None  # None where nobody could say
    worker: str | None = None  # ready, starting, down …; None where this user may not read INFO
    refuses: str | None = None  # why it stores nothing now
    aside: int = 0  # documents that are not read, since the worker ended with them twice; INFO and doctor name them
    answers_kept: int | None = None  # since the module was loaded; None where INFO may not be read, and with a filter
    answers_read: int | None = None
    reading_ms: float | None = None  # of all these together, waits included
    memory: int | None = None  # bytes that Redis uses; None as above
    restarts: int | None = None  # workers that were started in place of one that ended
    error: str | None = None


class ClusterInfo(BaseModel):
    model: str  # the reader that is asked
    hour: list[tuple[int, int]] = Field(default_factory=list)
    """Questions of each of the last 60 minutes that the process which tells this has answered, and not."""
    nodes: list[NodeInfo]  # masters by their slots, each followed by its replicas


class Evidence(BaseModel):
    """Sentences of the document that support an answer."""

    text: str
    start: int
    end: int


class Part(BaseModel):
    """An exact excerpt of a document: a sentence or several in a row, or an item of a list."""

    text: str
    corpus: str
    document: str
    title: str
    start: int
    end: int
    place: Place | None = None  # where it begins in the file
    score: (
        float  # probability that it is evidence, of several sentences the likeliest one's; of an item, that it answers
    )

    @computed_field(description="whether `text` is a sentence that shardqa wrote of a row; its file has `place.cells`")  # type: ignore[prop-decorator]
    @property
    def written(self) -> bool:
        cells = self.place.cells if self.place is not None else None
        return bool(cells) and not any(self.text in value for _, value in cells or ())

    @property
    def quote(self) -> str:
        """The words as the file has them: of a row its cells."""
        return row_of(self.place.cells) if self.written and self.place and self.place.cells else self.text


class Candidate(BaseModel):
    """One span of one document."""

    answer: str
    score: float  # probability that this span answers the question, calibrated
    corpus: str
    document: str
    title: str
    start: int
    end: int
    passage: str  # text of the passage read
    passage_start: int  # its first character in the document
    shard: str  # tag of the shard that read it
    rank_score: float
    margin: float  # span logit minus no-answer logit
    place: Place | None = None  # where it stands in the file: page, headings, row …
    metadata: dict[str, Any] = Field(default_factory=dict)  # of its document
    evidence: list[Evidence] = Field(default_factory=list)  # its own sentence
    possible: bool = False  # worth showing to people beside the answer, or where there is none


class ShardUse(BaseModel):
    """One shard's part in an answer."""

    node: str
    tag: str
    passages: int  # read there
    cached: bool  # its answer key was there already
    key: str = ""  # its answer key: a GET of it at the node gives this shard's candidates
    us: dict[str, int] = Field(default_factory=dict)  # microseconds by phase, as measured there; empty when cached


class Timing(BaseModel):
    """Milliseconds as the API saw them; a phase that did not run is 0."""

    cache: float = 0.0
    terms: float = 0.0
    rank: float = 0.0
    read: float = 0.0
    total: float = 0.0


class Composed(BaseModel):
    """An answer in one form, sure or not."""

    head: Part  # the span; of other forms the first part
    parts: list[Part]
    score: float  # probability that it is right
    below: Lines  # scores under which it is not given
    passage: str  # around the head
    passage_start: int
    metadata: dict[str, Any]  # of the head's document

    def text(self, form: Form) -> str:
        return self.head.text if form == "span" else "\n".join(dict.fromkeys(part.quote for part in self.parts))


class Answer(BaseModel):
    """Reply to a question. `answer` is None exactly when `no_answer` is true."""

    question: str
    corpus: str  # that was asked; several with commas, as they can be asked again
    answer: str | None  # a span's text; of other forms those of `parts`, a line each, of a row its cells
    form: Form = "span"  # what `answer` is; where there is none, what it would have been
    pinned: bool = False  # somebody has chosen this place for the question; nothing was ranked or read
    score: float  # of the answer; of the best one that was found when there is no answer
    no_answer: bool
    needed: float = 0.0  # the score that an answer had to reach
    lines: Lines  # what it would have had to reach with each choice of `answer_when`
    document_corpus: str | None = None  # the document's own
    document: str | None  # these of a span itself, of other forms of the first of `parts`
    title: str | None
    start: int | None
    end: int | None
    passage: str | None
    passage_start: int | None
    place: Place | None = None
    evidence: list[Evidence] = Field(default_factory=list)  # `parts` of an answer
    parts: list[Part] = Field(default_factory=list)
    """Of a span the sentences that hold and support it, of its document, in order; of `sentences` these, of a `list`
    its items. Without an answer: the best sentences of all passages that were read, best first; none where nothing
    is near."""
    metadata: dict[str, Any] | None = None  # of its document
    n_best: list[Candidate]
    cached: bool
    cache: Literal["process", "redis"] | None
    partial: bool  # some shard did not answer: its documents were not looked at
    failed: list[str]  # nodes that did not answer
    shards: list[ShardUse]
    model: str
    absent: list[str] = Field(default_factory=list)
    """Words of the question that no passage has; with an answer its names, numbers and codes alone."""
    corrected: dict[str, str] = Field(default_factory=dict)
    """Words of the question that no passage has, and those that were asked in their place: slips of the keys."""
    warnings: list[str] = Field(default_factory=list)  # what speaks against the answer beside its score
    timing: Timing

    @classmethod
    def of(cls, found: Composed | None, form: Form, **others: Any) -> Self:
        """The answer that was found, if one was, in its form; `others` are the fields that don't tell its place."""
        if found is None:
            nowhere = dict.fromkeys(("answer", "document", "title", "start", "end", "passage", "passage_start"))
            return cls(form=form, no_answer=True, **nowhere, **others)
        head = {name: getattr(found.head, name) for name in ("document", "title", "start", "end", "place")}
        head |= {name: getattr(found, name) for name in ("passage", "passage_start", "metadata")}
        head["evidence"] = [Evidence(text=part.text, start=part.start, end=part.end) for part in found.parts]
        text, corpus = found.text(form), found.head.corpus
        return cls(form=form, answer=text, no_answer=False, document_corpus=corpus, **head, **others)

    def _repr_html_(self) -> str:
        """What a notebook shows: the passage, the answer's words marked, and where it stands."""
        if self.passage is None or self.start is None or self.end is None:
            return "<p>no sure answer</p>"
        edges = 0, self.start - (self.passage_start or 0), self.end - (self.passage_start or 0), None
        before, words, after = (escape(self.passage[start:end]) for start, end in pairwise(edges))
        where = escape(self.title or self.document or "")
        return f"<blockquote>{before}<mark>{words}</mark>{after}</blockquote><p>{where}, {self.score:.0%}</p>"


class MergedCandidates(BaseModel):
    """The cached part of an answer: all candidates, before n_best, form and min_score are applied."""

    candidates: list[Candidate]
    below: Lines  # scores under which no span is answered
    shards: list[ShardUse]
    composed: dict[Form, Composed]  # none where there is no candidate
    auto: Form  # the one for who leaves that open
    likeliest: list[Part] = Field(default_factory=list)  # parts where there is no answer
    absent: list[str] = Field(default_factory=list)  # terms of the question that no passage has
    corrected: dict[str, str] = Field(default_factory=dict)  # words of the question, and what was asked in place
    reader: str = ""  # another one than the settings' read: that of many languages


class Step(BaseModel):
    """A step on the way to an answer."""

    step: Literal["terms", "rank", "read"]
    ms: float  # since the question came
    passages: int  # terms: in the corpus; rank: found; read: read so far
    documents: list[str] = Field(default_factory=list)  # rank: of the passages found, best first
    best: Candidate | None = None  # read: of what was read so far


class Highlight(BaseModel):
    """A word of the document that the question looks for: `text[start:end]`, in characters."""

    start: int
    end: int
    term: str  # its stem


class TermScore(BaseModel):
    """The score that one term of the question adds to a passage's."""

    term: str
    tf: int  # times in the passage
    title_tf: int
    df: int  # passages of the corpus that hold it
    idf: float
    body: float  # BM25 of the text
    title: float  # of the title


class PairScore(BaseModel):
    """The score that two terms in a row add to a passage's."""

    first: str
    second: str
    tf: int
    df: int
    score: float


class BridgeScore(BaseModel):
    """A title of the passage's document that one of the question's first passages names."""

    title: str  # its content words, stemmed
    passage: str  # key of the first passage
    score: float  # what that adds to the score


class RankScore(BaseModel):
    """The parts of a passage's score: terms, pairs, nearness and a bridge."""

    terms: list[TermScore]
    pairs: list[PairScore]
    cosine: float | None = None  # between its vector and the question's; None where they are not compared
    near: float = 0.0  # what that adds to the score; words then count by the square of what they cover
    bridge: BridgeScore | None = None  # what leads to it from a first passage; None where nothing does
    score: float


class FoundPassage(BaseModel):
    key: str
    corpus: str
    document: str
    title: str
    text: str
    start: int  # its first character in the document
    end: int
    score: float
    highlights: list[Highlight]
    place: Place | None
    places: list[Mark] = Field(default_factory=list)  # all that are in force in it, by characters of the document
    metadata: dict[str, Any]
    shard: str  # tag
    node: str
    why: RankScore | None = None  # of an explanation

    @computed_field(description="whether rows of `text` are sentences that shardqa wrote; their file has the `cells`")  # type: ignore[prop-decorator]
    @property
    def written(self) -> bool:
        return any(place.cells for _, place in self.places)


class SearchTiming(BaseModel):
    """Milliseconds."""

    terms: float
    rank: float
    load: float
    total: float


class SearchResult(BaseModel):
    """Passages, best first; nothing was read."""

    question: str
    corpus: str  # as of an Answer
    passages: list[FoundPassage]
    partial: bool
    failed: list[str]
    timing: SearchTiming


class Term(BaseModel):
    """A term of the question in the corpus."""

    term: str
    df: int  # passages that hold it
    cf: int  # times in all of them
    idf: float


class ReadSpan(BaseModel):
    """A candidate with what its score is made of."""

    answer: str
    document: str
    start: int
    end: int
    passage: str  # key
    span_logit: float  # start and end logit together
    null_logit: float  # that the passage does not say
    margin: float  # their difference
    lag: float  # 0: of the best passage; 1: of one whose rank score is 0
    gap: float  # logits above the best span of other words
    fall: float  # how far the best passage's rank score lies above the second's, a share of it
    length: float  # ln(1 + words of the question)
    rank: float  # how high its passage ranks, whatever the size of the corpus
    evidence: float  # of its sentence: the mean of its tokens' logits; 0 of a reader without that output
    relevance: float  # logit that its passage answers at all; 0 of a reader without that output
    missing: float  # 1: its sentence, with row, headings and title, lacks a name, number or code of the question
    lost: float  # 1: its passage lacks one, too
    said: float  # share of the question's words that its sentence has
    whole: float  # 1: its sentence has all of them
    precedence: float  # orders the spans, the highest first: by margin, lag, evidence and relevance
    log_odds: dict[str, float]  # what each signal adds to the score's log-odds, bias included
    score: float


class GraphNode(BaseModel):
    id: str
    kind: Literal["question", "term", "passage", "document", "shard", "answer"]
    label: str


class GraphEdge(BaseModel):
    source: str
    target: str
    weight: float


class Graph(BaseModel):
    """The part of the graph that led to the answer."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class Explanation(BaseModel):
    """Everything an answer was made of, in order."""

    question: str
    asked: str  # the question as it is ranked and read
    corpus: str  # as of an Answer
    size: int  # passages of the corpora
    terms: list[Term]
    passages: list[FoundPassage]  # all that were ranked
    read: int  # of them, the best that were read
    sure: float  # the score from which no more is read
    spans: list[ReadSpan]
    weights: dict[str, Any]  # the reader's scoring
    answer: Answer
    graph: Graph
