"""The one place that spells a Redis key (see docs/keys.md for the table with examples).

Type, then corpus, then tag, then the rest: one folder per corpus in key browsers, one ACL pattern per
corpus (`~doc:cia:*`). Corpus names hold no brace, so the first `{` of a key is always the tag's.
All functions are pure; they raise BadCorpusName, BadDocumentId, EmptyQuestion or BadKey.
"""

import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from shardqa.errors import BadCorpusName, BadDocumentId, BadKey, EmptyQuestion

SHIPPED_READER = "reader-v4-int8-85a1b412"  # ends as the SHA-256 of its network begins: one name, one network
BUCKETS = 256  # hash tags that documents spread over; many per shard, so that resharding moves few documents at a time
MAX_CORPUS = 64  # characters; the name is repeated in every key
MAX_DOCUMENT_ID = 512  # UTF-8 bytes; the id is repeated in every passage's key
MAX_QUESTION_IN_KEY = 256  # UTF-8 bytes; a longer question is hashed
HASHED = "BLAKE2-"  # marks a hashed question; normalisation leaves no capital

CORPUS = re.compile(r"[a-z0-9._-]+")
TAGGED = re.compile(r"^[^{]*\{[^}]+\}")  # a name whose slot is that of a part of it
MODEL = re.compile(r"model:([^{}]+):\{[^{}]+\}")
# What the tokenizer takes for blanks. Not \s: it drops other control characters and joins what they parted.
BLANKS = re.compile(r"[\t\n\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
ACCENTS = re.compile("[\u0300-\u0333\u0339-\u036f]")  # without strokes, which make ≠ of =: the tokenizer drops them
QUESTION_MARKS = "?？؟"
FULL_STOP = re.compile(r"(?<=[^\W_])\.\Z")  # one that ends a sentence: `cd ..` and `the regex .` keep theirs
NO_WORDS = "PZC"  # Unicode's categories of punctuation, blanks and controls

ENCODER = "encoder"  # name of the model that gives passages their vectors: a cluster has one
KEPT = re.compile(r"(answer):([a-z0-9._-]+):(\{[^{}]+\}:\d+):|(ask):([a-z0-9._,-]+):([0-9a-f]{12}):[^:]*:\d+:")
NEVER = "never:"  # how keys that never exist begin
ENCODERS = f"model:{ENCODER}:"  # how their keys begin
MANY_READER, MANY_ENCODER = "languages-reader", "languages-encoder"  # names of the pair of many languages
NO_ENCODER = "encoder:off"  # string: somebody removed the encoder, and `prepare` stores none
DENSE, BRIDGES, LANGUAGES = "dense", "bridges", "languages"  # what a corpus has off or on: how its marks' keys begin
REQUESTS = "apikeys:requests:"  # and a minute since 1970: a hash, by a key's id the requests made with it
FEEDBACK = "feedback:"  # and a corpus: a stream of what readers say is right
ASKED = "asked:"  # and a corpus: a stream of the questions that were asked of it
API_KEYS = "apikeys"  # hash: id -> an API key as JSON, with the hash of its secret
STREAMS = "ingest"  # how the keys of both kinds of streams below begin
INGEST_STREAMS = "ingest:"  # and any name, best a {tag}: a stream whose entries become documents
FAILED_ENTRIES = "ingest-failed:"  # and the same tag: a stream of those that can't, with the reason
EPOCH_CHANNEL = "shardqa:epoch"  # pub/sub: "<corpus> <tag> <epoch>" whenever a shard's part of a corpus changes


def check_corpus(corpus: str) -> str:
    """Returns `corpus`, or raises BadCorpusName."""
    if len(corpus) > MAX_CORPUS or not CORPUS.fullmatch(corpus):
        raise BadCorpusName(
            f"corpus name {corpus[:80]!r} is not of the form [a-z0-9._-]+ with at most {MAX_CORPUS} characters; "
            "choose a name like 'handbook-2026'"
        )
    return corpus


def check_document_id(document: str) -> str:
    """Returns `document`, or raises BadDocumentId (empty, too long, control characters, lone surrogates)."""
    if not document:
        raise BadDocumentId("the document id is empty; give it 1 to 512 bytes, like a path or a title")
    if document in (".", ".."):
        raise BadDocumentId(f"document id {document!r} can't stand in an address, which leaves it out; add a word")
    try:
        size = len(document.encode())
    except UnicodeEncodeError:
        raise BadDocumentId(f"document id {document[:80]!r} is not valid Unicode; re-encode it as UTF-8") from None
    if size > MAX_DOCUMENT_ID:
        raise BadDocumentId(f"document id of {size} bytes is longer than {MAX_DOCUMENT_ID}; shorten it: a hash will do")
    if not document.isprintable() and any(unicodedata.category(c) == "Cc" for c in document):
        raise BadDocumentId(f"document id {document[:80]!r} holds a control character; remove it")
    return document


def bucket(document: str) -> str:
    """The hash tag (without braces) of a document and of all that belongs to it: 'b0017'."""
    return f"b{zlib.crc32(document.encode()) % BUCKETS:04d}"


ALL_BUCKETS = tuple(f"b{number:04d}" for number in range(BUCKETS))


def doc(corpus: str, document: str) -> str:
    return f"doc:{check_corpus(corpus)}:{{{bucket(check_document_id(document))}}}:{document}"


def docs(corpus: str) -> str:
    """The pattern of all documents of a corpus; "*" stands for any."""
    return f"doc:{corpus}:*"


def file(corpus: str, document: str) -> str:
    """Hash: `content`, the file that a document was read from, and `of`, the digest of the text that it became."""
    return f"file:{check_corpus(corpus)}:{{{bucket(check_document_id(document))}}}:{document}"


def files(corpus: str) -> str:
    """Set: names of the kept files that hold several documents."""
    return f"files:{check_corpus(corpus)}"


def passage(corpus: str, document: str, n: int) -> str:
    return f"passage:{corpus}:{{{bucket(document)}}}:{document}:{n}"


def tokens(corpus: str, document: str, n: int) -> str:
    return f"tokens:{corpus}:{{{bucket(document)}}}:{document}:{n}"


def tokens_of_passage(passage_key: str) -> str:
    return "tokens:" + passage_key.removeprefix("passage:")


def feedback(corpus: str) -> str:
    return f"{FEEDBACK}{check_corpus(corpus)}"


def task(id: str) -> str:
    """String: how far work is that goes on behind its reply, as JSON."""
    return f"task:{{{id}}}"


def task_mark(id: str) -> str:
    """String, expires: whoever does the work lives, or shall cancel it."""
    return f"task:{{{id}}}:mark"


def tasks(corpus: str) -> str:
    """Set, expires: ids of the tasks that put files into the corpus."""
    return f"tasks:{check_corpus(corpus)}"


def asked(corpus: str) -> str:
    return f"{ASKED}{check_corpus(corpus)}"


def drop(corpus: str, bucket: str) -> str:
    """String: documents of the bucket when its part of the corpus was dropped; while it is there, more may be left."""
    return f"drop:{corpus}:{{{bucket}}}"


def mark(word: str, corpus: str, bucket: str) -> str:
    """String: "off" of DENSE, the corpus' vectors are not used; "off" of BRIDGES, its titles are not followed; "on" of
    LANGUAGES, it is read by the pair of many languages."""
    return f"{word}:{corpus}:{{{bucket}}}"


def first_passage(passage_key: str) -> str:
    """The key of the first passage, which carries the fields of its document, such as the title."""
    return f"{passage_key.rpartition(':')[0]}:0"


def doc_of_passage(passage_key: str) -> str:
    """The key of the document that a passage's key belongs to."""
    head, _, _ = passage_key.rpartition(":")
    return "doc:" + head.removeprefix("passage:")


def model(name: str, tag: str) -> str:
    return f"model:{name}:{{{tag}}}"


def name_of_model(key: str) -> str | None:
    """The name in a key that `model` made; None for any other."""
    match = MODEL.fullmatch(key)
    return match[1] if match else None


def epoch(corpus: str, tag: str) -> str:
    """String: the epoch of a shard's part of a corpus; see `next_epoch`."""
    return f"epoch:{corpus}:{{{tag}}}"


def failed_entries(stream: str) -> str:
    """The stream that takes the entries of an `ingest:` stream which can't become documents, in the same slot."""
    if TAGGED.search(stream):
        return FAILED_ENTRIES + stream.removeprefix(INGEST_STREAMS)
    return f"{FAILED_ENTRIES}{{{stream}}}"


def suspects(tag: str) -> str:
    return f"suspects:{{{tag}}}"


def never(tag: str) -> str:
    """A key that never exists: a write there on condition that it does shows whether the shard takes writes."""
    return f"{NEVER}{{{tag}}}"


def answer(
    corpus: str, tag: str, epoch: int, model: str, k: int, question: str, filter_: str = "", among: str = ""
) -> str:
    """`among` names the corpora that the question is for, with commas, where they are several."""
    return f"answer:{corpus}:{{{tag}}}:{epoch}:{model}:{k}:{question_in_key(question, filter_, among)}"


def ask(
    corpus: str,
    epoch: str,
    model: str,
    k: int,
    sure: float,
    question: str,
    filter_: str = "",
    names: Sequence[str] = (),
) -> str:
    """`corpus` may be several with commas: no pattern of one of them allows to read that; `epoch` is the digest of all
    shards' epochs (`corpus_epoch`); `sure` the score from which no more is read; `names` are those of the question,
    which scores look for and only capitals may tell."""
    told = blake2b(" ".join(names).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest() if names else ""
    read = "-".join(filter(None, (f"{sure:g}", told)))
    return f"ask:{corpus}:{epoch}:{model}:{k}:{read}:{question_in_key(question, filter_)}"


def corpus_words(corpus: str) -> str:
    """String: synonyms and pinned answers of a corpus as JSON. Under `ask:`, so that
    whoever may ask may read it."""
    return f"ask:{corpus}:words"


def normalise_question(question: str) -> str:
    """The question as it is ranked, read and cached: without case, kinds and runs of blanks, and how it ends.

    All else tells questions apart: C, C++, C# and C♯, = and ≠, 10⁵ and 105, Maße and Masse. Accents stay: the English
    tokenizer drops them, but in Vietnamese they make other words. Raises EmptyQuestion when there is nothing but
    punctuation.
    """
    normal = without_end(folded(question))
    if all(unicodedata.category(c)[0] in NO_WORDS for c in normal):
        raise EmptyQuestion(f"the question {question[:40]!r} has no words; ask something like 'Who founded the mill?'")
    return normal


def without_end(question: str) -> str:
    """Takes question marks and full stop off the end, where the reader puts one question mark whatever stood."""
    return FULL_STOP.sub("", question.rstrip(QUESTION_MARKS + " "))


def folded(text: str) -> str:
    """The text with no case, one blank for many, and accents in one form.

    Letter by letter, as the English tokenizer does: lower() of a whole word knows a final sigma. No compatibility forms
    and no casefold(): they make 105 of 10⁵ and ss of ß.
    """
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFC", "".join(map(str.lower, unicodedata.normalize("NFC", text))))
    return BLANKS.sub(" ", text).strip(" ")


def seen(text: str) -> str:
    """The folded text as the English tokenizer sees it: with no accents."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return folded(text)


def question_in_key(question: str, filter_: str = "", among: str = "") -> str:
    """A normalised question as it stands in keys: itself, or 'BLAKE2-' and 32 hex digits past 256 bytes, or where a
    filter (canonical) or several corpora go with it."""
    raw = question.encode("utf-8", "surrogatepass")
    if filter_ or among:
        raw += b"\0" + filter_.encode() + (b"\0" + among.encode() if among else b"")
    elif len(raw) <= MAX_QUESTION_IN_KEY:
        return question
    return HASHED + blake2b(raw, digest_size=16).hexdigest()


def next_epoch(previous: int, now_ms: int) -> int:
    """Rises with every change and never repeats, even after the counter was lost: the time in ms, or one more."""
    return max(previous + 1, now_ms)


def ask_epoch(epochs: Mapping[tuple[str, str], int]) -> str:
    """The epoch in an `ask:` key: the state of one corpus or of several, by corpus and tag."""
    is_one = len({corpus for corpus, _ in epochs}) == 1
    return corpus_epoch({tag if is_one else f"{corpus} {tag}": number for (corpus, tag), number in epochs.items()})


def corpus_epoch(epochs: dict[str, int]) -> str:
    """A short name for the state of a corpus, made of the epochs of all shards (tag -> epoch)."""
    text = " ".join(f"{tag}={number}" for tag, number in sorted(epochs.items()))
    return blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class DocKey:
    corpus: str
    tag: str  # the bucket
    document: str


class DocumentName(NamedTuple):
    """A document among all others: each corpus has ids of its own."""

    corpus: str
    id: str


@dataclass(frozen=True, slots=True)
class PassageKey:
    name: DocumentName  # its document's
    tag: str  # the bucket
    n: int

    @property
    def corpus(self) -> str:
        return self.name.corpus

    @property
    def document(self) -> str:
        return self.name.id


@dataclass(frozen=True, slots=True)
class AnswerKey:
    corpus: str
    tag: str  # of the shard
    epoch: int
    model: str
    k: int
    question: str  # normalised, or hashed (starts with HASHED)


def parse_kept(key: str) -> tuple[str, str, str]:
    """(word, corpus or corpora with commas, epoch as it stands there) of a key that `answer` or `ask` made."""
    match = KEPT.match(key)
    if match is None:
        raise BadKey(f"key {key[:120]!r} holds no answer")
    return match[1] or match[4], match[2] or match[5], match[3] or match[6]


def _head(key: str, word: str) -> tuple[str, str, str]:
    """Returns (corpus, tag, rest) of `<word>:<corpus>:{<tag>}:<rest>`."""
    match = re.fullmatch(rf"{word}:([a-z0-9._-]+):\{{([^}}]+)\}}:(.+)", key, re.DOTALL)
    if match is None:
        raise BadKey(f"key {key[:120]!r} is not of the form {word}:<corpus>:{{tag}}:…")
    return match[1], match[2], match[3]


@lru_cache(1_024)  # a part of a file's rows, which is looked at where it is read and where it is held
def parse_doc(key: str) -> DocKey:
    name = DocKey(*_head(key, "doc"))
    if name.tag != bucket(name.document):
        raise BadKey(
            f"key {key[:120]!r} has the tag {{{name.tag}}} but documents of this id belong to "
            f"{{{bucket(name.document)}}}; write it under {doc(name.corpus, name.document)!r}"
        )
    return name


@lru_cache(1_024)  # engine and shards look at a passage's key many times a question
def parse_passage(key: str) -> PassageKey:
    corpus, tag, rest = _head(key, "passage")
    document, _, n = rest.rpartition(":")
    if not document or not n.isascii() or not n.isdigit():
        raise BadKey(f"key {key[:120]!r} does not end in :<document id>:<number>")
    return PassageKey(DocumentName(corpus, document), tag, int(n))


def parse_mark(word: str, key: str) -> tuple[str, str]:
    """(corpus, bucket) of a key that `mark` or `drop` made."""
    match = re.fullmatch(rf"{word}:([a-z0-9._-]+):\{{(b\d{{4}})\}}", key)
    if match is None:
        raise BadKey(f"key {key[:120]!r} is not of the form {word}:<corpus>:{{bucket}}")
    return match[1], match[2]


def parse_answer(key: str) -> AnswerKey:
    corpus, tag, rest = _head(key, "answer")
    parts = rest.split(":", 3)
    if len(parts) < 4 or not all(p.isascii() and p.isdigit() for p in (parts[0], parts[2])) or not parts[3]:
        raise BadKey(f"key {key[:120]!r} is not of the form answer:<corpus>:{{tag}}:<epoch>:<model>:<k>:<question>")
    return AnswerKey(corpus, tag, int(parts[0]), parts[1], int(parts[2]), parts[3])
