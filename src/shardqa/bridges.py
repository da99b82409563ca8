"""From a question's first passages to the documents whose titles stand in them: one step further than its own words.

    first passages --name--> titles --are borne by--> documents: their best passages come nearer to the first

A title that few documents bear, and that is a rare word or several words, names something. A document that bears one
that a first passage names gets its best passage carried a share of the way to the ceiling, the first passage's score:

    score + CARRY * (score of the naming passage / ceiling) * (ceiling - score)

So no passage comes before the first by this. All of it follows from merged scores and from integers that shards sum up,
and a document lies whole on one shard: ranks are the same however many shards there are. Pure functions; who asks whom
is engine/bridging.py's matter, and gears_functions/shard/rankings.py's for who asks a shard without an engine.

The constants were chosen on the questions of qed-nq and clapnq and on HotpotQA's: docs/benchmarks.md has what others
give.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa import keys
from shardqa.errors import BadData, BadKey

FIRST = 3  # passages whose names are followed
CARRY = 0.4  # share of the way that a title in the very first passage carries
BEARERS_MOST = 10  # documents that may bear a title: what more bear says little about each
RARE = 100  # a title of one word stands in the corpus once for so many passages at most
RARE_ANYWAY = 5  # times that it may stand there in a small one
LONGEST = 8  # words of a title, stop words not counted
MOST_WORDS = 2_000  # of a passage, in a request
TITLED = 2  # documents with titles that a corpus needs: of one, nothing leads to another


@dataclass(frozen=True, slots=True)
class FirstPassage:
    key: str
    score: float
    words: tuple[str, ...]  # its content terms, in order

    def names(self, title: str) -> bool:
        return f" {title} " in f" {' '.join(self.words)} "


@dataclass(frozen=True, slots=True)
class NamedBy:
    """A first passage that names a title."""

    passage: str  # key
    share: float  # of the way to the ceiling that it carries


@dataclass(frozen=True, slots=True)
class Bridges:
    """Titles that a question's first passages name."""

    ceiling: float  # the first passage's score
    titles: Mapping[str, tuple[NamedBy, ...]]  # each title's sources, best first

    def record(self) -> dict[str, Any]:
        """The fields for its JSON."""
        titles = {title: [[one.passage, one.share] for one in of] for title, of in self.titles.items()}
        return {"ceiling": self.ceiling, "titles": titles}

    @classmethod
    def parse(cls, record: object) -> Bridges:
        """The inverse of `record`; raises BadData."""
        fields = record if isinstance(record, dict) else {}
        try:
            titles = {
                title: tuple(_source(passage, share) for passage, share in of) for title, of in fields["titles"].items()
            }
            return cls(_number(fields["ceiling"], math.inf), titles)
        except (LookupError, TypeError, ValueError, AttributeError, BadKey):
            raise BadData(
                f"bridges are {str(record)[:80]!r}, wanted: a ceiling and titles with sources; leave them out"
            ) from None

    def best(self, title: str, document: str) -> NamedBy | None:
        """The passage that carries a document that bears the title most; its own don't."""
        return next((one for one in self.titles[title] if keys.parse_passage(one.passage).document != document), None)


@dataclass(frozen=True, slots=True)
class NamedTitles:
    """Titles that the first passages' words name on one shard, or on all."""

    titles: Mapping[str, int]  # documents that bear it, by title that stands in the words
    words: Mapping[str, int]  # occurrences of each of the words in all passages

    def record(self) -> dict[str, Any]:
        """The fields for its JSON."""
        return {"titles": dict(self.titles), "words": dict(self.words)}

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> NamedTitles:
        """The inverse of `record`, of a shard's reply to Bridge."""
        return cls(record["titles"], record["words"])

    def is_name(self, title: str, passages: int) -> bool:
        """Whether a title names something in a corpus of so many passages."""
        if self.titles[title] > BEARERS_MOST:
            return False
        return " " in title or self.words.get(title, 0) <= max(RARE_ANYWAY, passages // RARE)


def _source(passage: object, share: object) -> NamedBy:
    if not isinstance(passage, str):
        raise TypeError(passage)
    keys.parse_passage(passage)
    return NamedBy(passage, _number(share, 1.0))


def _number(value: object, most: float) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf or value > most:  # type: ignore[operator]
        raise ValueError(value)
    return float(value)  # type: ignore[arg-type]


def parse_words(record: object) -> list[list[str]]:
    """Parses what Bridge is asked with: words of the first passages. Raises BadData."""
    is_good = (
        isinstance(record, list)
        and len(record) <= FIRST
        and all(isinstance(words, list) and len(words) <= MOST_WORDS for words in record)
        and all(isinstance(word, str) for words in record for word in words)
    )
    if not is_good:
        raise BadData(
            f"the words are {str(record)[:80]!r}; a list of at most {FIRST} lists of at most {MOST_WORDS:,} words is "
            "needed: those that Rank told"
        )
    return record  # type: ignore[return-value]


def first_passages(lists: Iterable[tuple[Sequence[tuple[str, float]], Sequence[Sequence[str]]]]) -> list[FirstPassage]:
    """The first of all shards' lists, each of (key, score) pairs and the words of the first of them."""
    passages = [
        FirstPassage(key, score, tuple(words))
        for scores, words_of_first in lists
        for (key, score), words in zip(scores, words_of_first, strict=False)
    ]
    return sorted(passages, key=lambda passage: (-passage.score, passage.key))[:FIRST]


def counted(shards: Iterable[NamedTitles]) -> NamedTitles:
    """Adds up the titles of all shards."""
    titles, words = Counter[str](), Counter[str]()
    for shard in shards:
        titles.update(shard.titles)
        words.update(shard.words)
    return NamedTitles(titles, words)


def build(first: Sequence[FirstPassage], counts_of_titles: NamedTitles, passages: int) -> Bridges | None:
    """Returns None where no title leads on."""
    if not first or not first[0].score > 0:
        return None
    ceiling = first[0].score
    titles = {
        title: tuple(
            NamedBy(passage.key, CARRY * (passage.score / ceiling)) for passage in first if passage.names(title)
        )
        for title in sorted(counts_of_titles.titles)
        if counts_of_titles.is_name(title, passages)
    }
    leading = {title: sources for title, sources in titles.items() if sources}
    return Bridges(ceiling, leading) if leading else None
