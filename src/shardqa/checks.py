"""Rules for questions and documents: each, and the fault of whoever breaks it, stands here once."""

from hashlib import blake2b

from shardqa import keys
from shardqa.errors import BadDocument, BadLimit, BadQuestion, DocumentTooLarge, QuestionTooLong

MAX_K = 100  # passages read per question; each costs one run of the reader
MAX_N_BEST = 20  # candidates a shard keeps in its answer
MAX_QUESTION = 2_000  # characters accepted before the reader's own bound of 128 word pieces is looked at
MAX_DOCUMENT = 5_000_000  # UTF-8 bytes of one text (War and Peace: 3.2 million); 4 s of a shard
BOUNDS = {"title": 512, "source": 4_096, "origin": 4_096}  # UTF-8 bytes: a document's id, a path, may have as many


def between(name: str, value: int, low: int, high: int) -> int:
    """The value; raises BadLimit."""
    if not low <= value <= high:
        raise BadLimit(f"{name}={value} is outside {low} to {high}; choose a number in between")
    return value


def question(raw: str) -> str:
    """The question as it is ranked and read; raises QuestionTooLong, BadQuestion, EmptyQuestion."""
    if len(raw) > MAX_QUESTION:
        raise QuestionTooLong(
            f"the question has {len(raw):,} characters, more than {MAX_QUESTION:,}; ask one short question"
        )
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        raise BadQuestion(f"the question holds a lone surrogate at character {error.start}; send it as UTF-8") from None
    return keys.normalise_question(raw)


def document(what: str, text: str, **others: str) -> None:
    """`text` and what else a document has, by name; `what` names it, or is empty where the reader knows.

    Raises BadDocument, DocumentTooLarge.
    """
    prefix = f"{what}: " if what else ""
    if not text.strip():
        raise BadDocument(f"{prefix}no text in it; give it at least one word")
    for name, part in {"text": text, **others}.items():
        try:
            size = len(part) if part.isascii() else len(part.encode())
        except UnicodeEncodeError as error:
            raise BadDocument(f"{prefix}lone surrogate at character {error.start}; send it as UTF-8") from None
        if name == "text" and size > MAX_DOCUMENT:
            raise DocumentTooLarge(f"{prefix}{size:,} bytes of text, more than {MAX_DOCUMENT:,}; split it")
        if size > BOUNDS.get(name, size):
            raise BadDocument(f"{prefix}its {name} has {size:,} bytes, more than {BOUNDS[name]:,}; shorten it")


def length(characters: int, what: str = "") -> None:
    """Checks a text's bound before all of it has arrived: by its characters, which are at least as many bytes.

    Raises DocumentTooLarge.
    """
    if characters > MAX_DOCUMENT:
        prefix = f"{what}: " if what else ""
        raise DocumentTooLarge(f"{prefix}more than {MAX_DOCUMENT:,} characters of text; split it")


def text_id(text: str) -> str:
    """The id of a document that was sent without one: the same text gets the same id."""
    return blake2b(text.encode(), digest_size=16).hexdigest()
