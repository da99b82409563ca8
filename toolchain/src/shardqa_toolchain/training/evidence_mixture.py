"""Questions with evidence out of many files: read, parted, cut to a row's length, asked of passages that do not answer.

Files of evidence lines (`evidence_lines.py`), and pages with questions: a text with ``# Title`` before each page and
blocks ``Q: question`` and ``A: answer`` within it. A block is a long answer; the other blocks of its page are what is
most like it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from shardqa.errors import BadData, QuestionTooLong
from shardqa.models import sentences
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import evidence_lines, squad
from shardqa_toolchain.evidence_lines import DEV, EvidenceRecord, Places
from shardqa_toolchain.training.retrieved import PassageRows

LONGEST = 1_100  # characters of a context: about what a row of 320 tokens holds beside a question

FIRST_SENTENCES = 4  # of a long answer that are sure to answer; what follows may

LOOKED_AT = 8  # passages that a search finds for a question, of which the best without its evidence is the negative

ECHO = re.compile(r"\A[^.?!\n]*\?\s*")  # the question again, with which some answers begin

TOLD_BY = 60  # characters of evidence by which a passage that holds it is known


def is_evidence(path: Path) -> bool:
    """Whether a file is of either kind, by its name; SQuAD's are not."""
    return evidence_lines.is_lines(path) or path.name.removesuffix(".gz").endswith(".txt")


def read(path: Path, held_out: float = 0.0) -> list[EvidenceRecord]:
    """Read a file of either kind; of pages, the share ``held_out`` is DEV. Raises BadData, OSError as open() does."""
    if evidence_lines.is_lines(path):
        return evidence_lines.read(path)
    records = [record for page in _pages(squad.read_text(path)) for record in page.records()]
    if not records:
        raise BadData(f"{path} has no question; blocks of lines 'Q: …' and 'A: …' under '# Title' are needed")
    return [replace(one, split=DEV) if squad.is_held_out(f"{one.title}/0", held_out) else one for one in records]


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    blocks: tuple[tuple[str, str], ...]  # questions and answers

    def records(self) -> Iterator[EvidenceRecord]:
        """Each block's question asked of the whole page, and of the page without the block."""
        for number, (question, answer) in enumerate(self.blocks):
            name = f"{self.title}/{number}"
            before = [text for _, text in self.blocks[:number]]
            after = [text for _, text in self.blocks[number + 1 :]]
            begins = sum(len(text) + 2 for text in before)
            sure, soft = _sentences(answer, begins)
            context = "\n\n".join([*before, answer, *after])
            yield EvidenceRecord(name, question, self.title, context, sure, soft)
            if before or after:
                yield EvidenceRecord(f"{name}#no", question, self.title, "\n\n".join(before + after), ())


def _pages(text: str) -> Iterator[_Page]:
    for part in f"\n{text}".split("\n# ")[1:]:
        title, _, rest = part.partition("\n")
        blocks = []
        for block in rest.split("\nQ: ")[1:]:
            question, _, answer = block.partition("\nA: ")
            answer = ECHO.sub("", answer.strip())
            if question.strip() and answer:
                blocks.append((_spoken(question), answer))
        yield _Page(title.strip(), tuple(blocks))


def _spoken(question: str) -> str:
    return " ".join(question.replace("(are)", "").split()).replace(" ?", "?")


def _sentences(answer: str, begins: int) -> tuple[Places, Places]:
    """The first sentences of an answer and the rest, as characters of a text in which it begins there."""
    edges = [0, *sentences.beginnings(answer), len(answer)]
    places = tuple(
        (begins + start, begins + start + len(answer[start:end].rstrip()))
        for start, end in itertools.pairwise(edges)
        if answer[start:end].strip()
    )
    return places[:FIRST_SENTENCES], places[FIRST_SENTENCES:]


def cut(record: EvidenceRecord, random: Random) -> EvidenceRecord:
    """Returns the record with a piece of its context, at most LONGEST characters, of whole sentences where they fit.

    The piece holds one of the places that answer, drawn at random, and whatever stands around it.
    """
    text = record.context
    if len(text) <= LONGEST:
        return record
    edges = sorted({0, len(text), *sentences.beginnings(text), *(n + 1 for n, sign in enumerate(text) if sign == "\n")})
    start, end = random.choice(record.spans) if record.spans else (random.choice(edges[:-1]),) * 2
    end = min(end, start + LONGEST)
    begins = random.randint(max(0, end - LONGEST), min(start, len(text) - LONGEST)) if start < end else start
    begins = min((edge for edge in edges if begins <= edge <= start), default=start)
    ends = max((edge for edge in edges if end <= edge <= begins + LONGEST and edge > begins), default=begins + LONGEST)
    ends = begins + len(text[begins:ends].rstrip())
    return replace(
        record,
        context=text[begins:ends],
        spans=_within(record.spans, text, begins, ends),
        soft=_within(record.soft, text, begins, ends),
    )


def _within(places: Places, text: str, begins: int, ends: int) -> Places:
    parts = ((max(start, begins), min(end, ends)) for start, end in places)
    return tuple((start - begins, end - begins) for start, end in parts if text[start:end].strip())


def negatives(
    records: Sequence[EvidenceRecord], share: float, tokenizer: Tokenizer, random: Random
) -> list[EvidenceRecord]:
    """Asks the questions of a share of the answered records of the other passage that is most like the question.

    A passage with any of the evidence does not count.
    """
    answerable = [one for one in records if one.spans]
    count = round(share * len(answerable))
    if not count:
        return []
    shelf = list(dict.fromkeys(one.context for one in records))
    passages = PassageRows([tokenizer.passage(text).ids for text in shelf])
    sample = random.sample(answerable, count)
    pairs = ((one, _unanswering(one, shelf, passages, tokenizer)) for one in sample)
    return [replace(one, id=f"{one.id}#no", context=text, spans=(), soft=()) for one, text in pairs if text is not None]


def _unanswering(
    record: EvidenceRecord, shelf: Sequence[str], passages: PassageRows, tokenizer: Tokenizer
) -> str | None:
    try:
        question = tokenizer.question(record.question)
    except QuestionTooLong:
        return None
    evidence = [record.context[start:end][:TOLD_BY] for start, end in (*record.spans, *record.soft)]
    texts = (shelf[number] for number in passages.likest(question, LOOKED_AT))
    return next((text for text in texts if not any(part in text for part in evidence)), None)
