"""Words of a corpus: what else its acronyms and names are called, and answers that its owner has pinned.

A question that has such a word is ranked and read with the other ones beside it. One that is pinned is answered by the
place it is pinned to, as long as the document says that there and the asker may see it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

from shardqa import checks, filters, keys
from shardqa.checks import MAX_QUESTION
from shardqa.engine.connections import Shards
from shardqa.engine.documents import Documents
from shardqa.engine.stored_words import StoredWords
from shardqa.errors import BadWords
from shardqa.http_schema import CorpusWords as Words
from shardqa.models.scoring import shipped_scoring
from shardqa.question import Question
from shardqa.schema import Answer, Composed, Part, Timing

ONE_WAY = "=>"
PINNED_BY = "pinned"  # in place of a reader's name


@dataclass(frozen=True, slots=True)
class Rule:
    word: str  # as questions are normalised
    others: tuple[str, ...]


def rules_of(line: str) -> list[Rule]:
    """`pto, paid time off` goes both ways, `k8s => kubernetes` one way. Raises BadWords."""
    left, is_one_way, right = line.partition(ONE_WAY)
    words, others = _listed(left), _listed(right if is_one_way else left)
    if not words or not others or len({*words, *others}) < 2:
        raise BadWords(f"the line {line[:60]!r} names no two words; write 'pto, paid time off' or 'k8s => kubernetes'")
    return [Rule(word, tuple(other for other in others if other != word)) for word in words]


def _listed(text: str) -> list[str]:
    return [word for one in text.split(",") if (word := keys.seen(one))]


def with_synonyms(text: str, rules: Sequence[Rule]) -> str:
    """Adds synonyms behind the normalised question; leaves it as it is where it would grow too long."""
    bare = keys.seen(text)
    synonyms = [other for rule in rules if _holds(bare, rule.word) for other in rule.others if not _holds(bare, other)]
    longer = f"{text} ({', '.join(dict.fromkeys(synonyms))})" if synonyms else text
    return longer if len(longer) <= MAX_QUESTION else text


def _holds(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def check(words: Words) -> Words:
    """Raises BadWords, and the faults of a pinned question."""
    for line in words.synonyms:
        rules_of(line)
    for pin in words.pins:
        checks.question(pin.question)
    return words


class CorpusWords(StoredWords):
    def __init__(self, shards: Shards, documents: Documents) -> None:
        super().__init__(shards)
        self._documents = documents

    async def expand(self, question: Question) -> Question:
        """The question with the synonyms of its corpora."""
        return _with_words(question, [words for corpus in question.corpora if (words := await self.of(corpus))])

    def known(self, question: Question) -> Question | None:
        """Returns what `expand` does, without asking; None where that is not known, or the answer is pinned."""
        beliefs = [self.believed(corpus) for corpus in question.corpora]
        every = [one.words for one in beliefs if one is not None and one.words is not None]
        if None in beliefs or any(_pins(question, words) for words in every):
            return None
        return _with_words(question, every)

    async def unmatched(self, corpus: str, words: Words) -> list[str]:
        """The pinned questions whose quote their document does not have, or whose document is not there."""
        texts = dict[str, str]()
        for name in {pin.document for pin in words.pins}:
            document = await self._documents.get(corpus, name)
            texts[name] = document.text if document else ""
        return [pin.question for pin in words.pins if pin.quote not in texts[pin.document]]

    async def pinned(self, question: Question) -> Answer | None:
        """The answer that one of the corpora has pinned to the question."""
        start = perf_counter()
        for corpus in question.corpora:
            for pin in _pins(question, await self.of(corpus)):
                document = await self._documents.get(corpus, pin.document)
                at = document.text.find(pin.quote) if document else -1
                if document is None or at < 0:
                    continue
                clauses = filters.parse(question.filter)
                if not filters.holds(clauses, document.title, document.source, document.metadata):
                    continue
                place = next((place for first, place in reversed(document.places) if first <= at), None)
                part = Part(
                    text=pin.quote,
                    corpus=corpus,
                    document=document.id,
                    title=document.title,
                    start=at,
                    end=at + len(pin.quote),
                    place=place,
                    score=1.0,
                )
                return _answer(question, part, document.metadata, (perf_counter() - start) * 1_000)
        return None


def _with_words(question: Question, every: Sequence[Words]) -> Question:
    rules = [rule for words in every for rule in _rules(tuple(words.synonyms))]
    return replace(question, text=with_synonyms(question.text, rules)) if rules else question


@lru_cache(64)
def _rules(lines: tuple[str, ...]) -> list[Rule]:
    return [rule for line in lines for rule in rules_of(line)]


def _pins(question: Question, words: Words | None) -> Iterator[Any]:
    """Yields the pins that ask this question, whatever its accents."""
    if words is not None and words.pins:
        wording = keys.seen(checks.question(question.wording))
        yield from (pin for pin in words.pins if keys.seen(checks.question(pin.question)) == wording)


def _answer(question: Question, part: Part, metadata: dict[str, Any], milliseconds: float) -> Answer:
    lines = shipped_scoring().below
    place = {"passage": part.text, "passage_start": part.start, "metadata": metadata}
    return Answer.of(
        Composed(head=part, parts=[part], score=1.0, below=lines, **place),
        "span",
        question=question.wording,
        corpus=question.asked_of,
        pinned=True,
        score=1.0,
        lines=lines,
        parts=[part],
        n_best=[],
        cached=False,
        cache=None,
        partial=False,
        failed=[],
        shards=[],
        model=PINNED_BY,
        timing=Timing(total=milliseconds),
    )
