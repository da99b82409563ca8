"""One corpus on one shard: its passages' terms, titles and documents, in memory; ranks them for a question.

Rebuilt from the `passage:` keys, never stored. A passage has a slot, an entry of parallel arrays; a removed one leaves
its slot dead until enough are dead to compact. One thread: the worker's loop.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa import bridges, keys
from shardqa.analysis import Analysed, Query, analyse
from shardqa.gears_functions.index import bm25, carrying, explained, vectors
from shardqa.gears_functions.index.catalogue import DocumentInfo, IndexCatalogue
from shardqa.gears_functions.index.postings import NOBODY, Counts, Postings
from shardqa.gears_functions.index.selection import Chosen, Field, Selection
from shardqa.gears_functions.index.titles import Titles
from shardqa.gears_functions.index.vectors import Vectors
from shardqa.models.embedding import StoredVector, text_digest
from shardqa.statistics import CorpusStatistics, QuestionVector

KEPT = 16  # filters whose passages are remembered while nothing changes
COMPACT_DEAD = 2_048  # dead slots before compaction is thought of: below, its cost is not worth the memory
COMPACT_SHARE = 0.5  # dead of all slots: each compaction (about 100 ns a word) is paid by as many removals


@dataclass(frozen=True, slots=True)
class PartSizes:
    """Sizes of documents of a corpus on one shard."""

    documents: int
    passages: int
    characters: int
    bytes: int


class Index:
    def __init__(self) -> None:
        self.last_question = 0.0  # monotonic seconds; 0 before one
        self._slots: dict[str, int] = {}  # passage key -> its slot
        self._documents: dict[str, int] = {}  # document id -> its number
        self._body, self._title = Postings(), Postings()
        self._keys: list[str] = []  # by slot
        self._fingerprints: list[int] = []  # by slot: hash of title and text, tells an unchanged passage
        self._vectors = Vectors()
        self._digests: list[bytes] = []  # by slot: of title and text, which a vector is of
        self._alive = array("b")  # by slot: 1, or 0 once removed
        self._document = array("i")  # by slot: number of its document
        self._words = array("i")  # by slot: words of the text
        self._title_words = array("i")  # by slot: words of the title
        self._ends = array("i")  # by slot: last character of the document that it covers, plus 1
        self._passages_of = array("i")  # by document number: passages alive
        self.catalogue = IndexCatalogue()  # of the documents that have passages
        self.titles = Titles()  # of those whose first passage is here
        self._chosen: dict[str, Chosen] = {}  # by filter: what it lets through, kept until something changes
        self._length = 0  # words of all passages alive
        self._title_length = 0  # words of all their titles

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._slots))

    @property
    def documents(self) -> int:
        return int(np.count_nonzero(_view(self._passages_of, np.int32)))

    @property
    def characters(self) -> int:
        """The characters of all documents, each up to the end of its last passage."""
        ends = np.zeros(len(self._passages_of), dtype=np.int64)
        alive = _view(self._alive, np.int8) != 0
        np.maximum.at(ends, _view(self._document, np.int32)[alive], _view(self._ends, np.int32)[alive])
        return int(ends.sum())

    def document_ids(self) -> list[str]:
        """Lists all documents that have passages."""
        return [document for document, number in self._documents.items() if self._passages_of[number]]

    def count_of_passages(self, document: str) -> int:
        number = self._documents.get(document)
        return 0 if number is None else self._passages_of[number]

    def passages_of(self, document: str) -> list[str]:
        """Keys of a document's passages, in no order."""
        number = self._documents.get(document)
        if number is None or not self._passages_of[number]:
            return []
        slots = np.flatnonzero((_view(self._document, np.int32) == number) & (_view(self._alive, np.int8) != 0))
        return [self._keys[slot] for slot in slots]

    # ---- changing

    def put(
        self,
        key: str,
        title: str,
        text: str,
        end: int = 0,
        info: DocumentInfo | None = None,
        path: str = "",
        words: Analysed | None = None,
    ) -> bool:
        """Adds or replaces a passage; False when it was there with all the same. Raises BadKey.

        `end` is where the passage ends in its document, characters; `info` comes with the first passage; words of the
        `path` count as the title's. `words` are those of the text, where they are known.
        """
        fingerprint = hash((title, text, end, info, path))
        slot = self._slots.get(key)
        if slot is not None and self._fingerprints[slot] == fingerprint:
            return False
        document = keys.parse_passage(key).document
        self.remove(key)
        self._append(key, document, title, text, end, fingerprint, path, words or analyse(text))
        if info is not None:
            self.catalogue.describe(document, title, info)
        return True

    def put_vector(self, key: str, stored: StoredVector) -> bool:
        """Gives a passage its vector; False where it is not here, or the vector is of another text."""
        slot = self._slots.get(key)
        if slot is None or stored.digest != self._digests[slot]:
            return False
        self._vectors.put(slot, stored.encoder, stored.vector)
        return True

    def _append(
        self, key: str, document: str, title: str, text: str, end: int, fingerprint: int, path: str, body: Analysed
    ) -> None:
        self._chosen.clear()
        slot = self._slots[key] = len(self._keys)
        named, below = _analysed(title), _analysed(path)
        head = Analysed(named.content + below.content, named.stop + below.stop)
        self._body.append(slot, (body.content, body.stop))
        self._title.append(slot, (head.content, head.stop))
        if keys.parse_passage(key).n == 0:
            self.titles.put(document, title, named)
        number = self._documents.setdefault(document, len(self._documents))
        if number == len(self._passages_of):
            self._passages_of.append(0)
        if not self._passages_of[number]:
            self.catalogue.add(document)
        self._passages_of[number] += 1
        self._keys.append(key)
        self._fingerprints.append(fingerprint)
        self._digests.append(text_digest(title, text))
        self._alive.append(1)
        self._document.append(number)
        self._words.append(len(body.content) + len(body.stop))
        self._title_words.append(len(head.content) + len(head.stop))
        self._ends.append(end)
        self._length += self._words[slot]
        self._title_length += self._title_words[slot]

    def remove(self, key: str) -> bool:
        """Forgets a passage; False when it was not there."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return False
        self._chosen.clear()
        self._vectors.remove(slot)
        self._alive[slot] = 0
        self._passages_of[self._document[slot]] -= 1
        parsed = keys.parse_passage(key)
        if parsed.n == 0:
            self.titles.remove(parsed.document)
        if not self._passages_of[self._document[slot]]:
            self.catalogue.remove(parsed.document)
        self._length -= self._words[slot]
        self._title_length -= self._title_words[slot]
        dead = len(self._keys) - len(self._slots)
        if dead >= COMPACT_DEAD and dead >= COMPACT_SHARE * len(self._keys):
            self._compact()
        return True

    def _compact(self) -> None:
        """Drops dead slots and the documents that have no others."""
        alive = np.flatnonzero(_view(self._alive, np.int8))
        moved = np.full(len(self._keys), NOBODY, dtype=np.int32)
        moved[alive] = np.arange(len(alive), dtype=np.int32)
        self._body, self._title = self._body.compacted(moved), self._title.compacted(moved)
        names = list(self._documents)
        old_documents = [self._document[slot] for slot in alive]
        self._documents = {}
        self._document = array("i", [self._documents.setdefault(names[n], len(self._documents)) for n in old_documents])
        self._passages_of = array("i", np.bincount(_view(self._document, np.int32)).astype(np.int32).tobytes())
        self._keys = [self._keys[slot] for slot in alive]
        self._fingerprints = [self._fingerprints[slot] for slot in alive]
        self._digests = [self._digests[slot] for slot in alive]
        self._vectors.compacted(moved)
        self._slots = {key: slot for slot, key in enumerate(self._keys)}
        for name in ("_words", "_title_words", "_ends"):
            setattr(self, name, array("i", _view(getattr(self, name), np.int32)[alive].tobytes()))
        self._alive = array("b", b"\1" * len(alive))

    # ---- asking

    def statistics(self, query: Query, view: str = "") -> CorpusStatistics:
        """This shard's numbers for the terms and pairs of a question, in the documents that `view` (canonical) shows.

        Raises BadFilter.
        """
        df, cf = dict[str, int](), dict[str, int]()
        body = self._seen_by(view).body
        for term in query.terms:
            slots, tf = body.term(term)
            df[term], cf[term] = len(slots), int(tf.sum())
        for first, second in query.pairs:
            df[f"{first} {second}"] = len(body.pair(first, second)[0])
        if view:
            return self._totals_of(view, df, cf)
        vectors = self._vectors.counts()
        lengths = (self._length, self._title_length)
        return CorpusStatistics(len(self), self.documents, *lengths, df, cf, vectors, titles=len(self.titles))

    def _totals_of(self, view: str, df: dict[str, int], cf: dict[str, int]) -> CorpusStatistics:
        chosen = self._of_filter(view)
        selection = self._selected(chosen)
        return CorpusStatistics(
            len(chosen.slots),
            len(chosen.passages_of),
            int(selection.words.sum()),
            int(selection.title_words.sum()),
            df,
            cf,
            self.vectors(view),
            titles=self.titles.among(self.catalogue.chosen(view)),
        )

    def sizes(self, view: str = "") -> PartSizes:
        """Sums up the documents that `view` shows. Raises BadFilter."""
        if not view:
            return PartSizes(self.documents, len(self), self.characters, self.catalogue.bytes)
        chosen, ids = self._of_filter(view), self.catalogue.chosen(view)
        ends = np.zeros(len(chosen.passages_of), dtype=np.int64)
        np.maximum.at(ends, chosen.document, _view(self._ends, np.int32)[chosen.slots])
        return PartSizes(len(ids), len(chosen.slots), int(ends.sum()), self.catalogue.bytes_of(ids))

    def vectors(self, view: str = "") -> dict[str, int]:
        """Counts the passages that `view` shows and that have a vector, by encoder."""
        if not view:
            return self._vectors.counts()
        mask = self._of_filter(view).mask
        counts = {one: int(np.count_nonzero(mask[self._vectors.slots(one)])) for one in self._vectors.counts()}
        return {encoder: count for encoder, count in counts.items() if count}

    def without_vector(self, encoder: str, limit: int) -> list[str]:
        """Keys of some passages that have no vector of this encoder."""
        if self._vectors.counts().get(encoder) == len(self):
            return []
        lacking = _view(self._alive, np.int8) != 0
        lacking[self._vectors.slots(encoder)] = False
        return [self._keys[slot] for slot in np.flatnonzero(lacking)[:limit]]

    def titled(self, query: Query, view: str = "") -> dict[str, int]:
        """Counts passages by term that their title holds; only the terms that some do."""
        title = self._seen_by(view).title
        found = {term: len(title.term(term)[0]) for term in query.terms}
        return {term: count for term, count in found.items() if count}

    def rank(
        self, query: Query, statistics: CorpusStatistics, limit: int, filter_: str = ""
    ) -> list[tuple[str, float]]:
        """The best `limit` passages with their scores, best first, ties by key; only what the question touches.

        Of the documents that `filter_` (canonical) lets through: a passage has the same score with it and without, as
        the statistics stay those of all documents that are there for whoever asks. Raises BadFilter.
        """
        if not self._slots or not statistics.passages:
            return []
        chosen = self._of_filter(filter_) if filter_ else None
        scores = self._scores(query, statistics, chosen)
        if statistics.bridges is not None:
            for row, carried in self._carried(scores, statistics.bridges, chosen).items():
                scores[row] += carried.score
        touched = np.flatnonzero(scores > 0)
        return self._best(touched if chosen is None else chosen.slots[touched], scores[touched], limit)

    def _scores(self, query: Query, statistics: CorpusStatistics, chosen: Chosen | None) -> NDArray[np.float64]:
        """Before anything is carried, float64 [rows]."""
        selection = self._everything() if chosen is None else self._selected(chosen)
        scores = _bm25(selection, query, statistics)
        if statistics.near is not None:
            cosines = self._vectors.cosines(statistics.near.encoder, statistics.near.vector, len(self._keys))
            idf = bm25.total_idf(query, statistics)
            scores = vectors.fused(scores, cosines if chosen is None else cosines[chosen.slots], idf)
        if chosen is None:
            scores[_view(self._alive, np.int8) == 0] = 0.0
        return scores

    def _carried(
        self, scores: NDArray[np.float64], crossings: bridges.Bridges, chosen: Chosen | None
    ) -> dict[int, carrying.Carried]:
        """By row: the best passage of each document that a bridge leads to."""
        sources = carrying.sources(crossings, self.titles)
        numbers = {self._documents[document]: one for document, one in sources.items() if document in self._documents}
        is_led_to = np.zeros(len(self._passages_of), dtype=np.bool_)
        is_led_to[list(numbers)] = True
        documents, alive = _view(self._document, np.int32), _view(self._alive, np.int8) != 0
        slots = np.flatnonzero(is_led_to[documents] & (alive if chosen is None else chosen.mask))
        rows = slots if chosen is None else np.searchsorted(chosen.slots, slots)
        best = dict[int, tuple[float, str, int]]()  # by document: the least of (-score, key), and its row
        for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
            number, candidate = self._document[slot], (-float(scores[row]), self._keys[slot], row)
            best[number] = min(best.get(number, candidate), candidate)
        return {
            row: carrying.Carried.of(numbers[number], -negative, crossings.ceiling)
            for number, (negative, _, row) in best.items()
            if -negative < crossings.ceiling
        }

    def first_words(self, ranked: Sequence[tuple[str, float]]) -> list[list[str]]:
        """Content terms of the first passages of a list, in order."""
        return [self._body.first_part(self._slots[key]) for key, _ in ranked[: bridges.FIRST]]

    def titles_in(self, words: Sequence[Sequence[str]], view: str = "") -> bridges.NamedTitles:
        """Returns the titles that these texts name, of what `view` shows, with counts. Raises BadFilter."""
        titles = sorted(set[str]().union(*map(self.titles.named_in, words)))
        body = self._seen_by(view).body
        times = {word: body.times(word) for word in sorted({word for text in words for word in text})}
        shown = self.catalogue.chosen(view) if view else None
        bearers = {title: self.titles.count(title, shown) for title in titles}
        borne = {title: count for title, count in bearers.items() if count}
        return bridges.NamedTitles(borne, {word: count for word, count in times.items() if count})

    def _seen_by(self, view: str) -> Selection:
        return self._selected(self._of_filter(view)) if view else self._everything()

    def _everything(self) -> Selection:
        dead = len(self._slots) < len(self._keys)
        alive = _view(self._alive, np.int8) != 0 if dead else None
        return Selection(
            Field(self._body, alive, None),
            Field(self._title, alive, None),
            _view(self._words, np.int32),
            _view(self._title_words, np.int32),
        )

    def _selected(self, chosen: Chosen) -> Selection:
        return Selection(
            Field(self._body, chosen.mask, chosen),
            Field(self._title, chosen.mask, chosen),
            _view(self._words, np.int32)[chosen.slots],
            _view(self._title_words, np.int32)[chosen.slots],
        )

    def _of_filter(self, filter_: str) -> Chosen:
        chosen = self._chosen.get(filter_)
        if chosen is None:
            ids = self.catalogue.chosen(filter_)
            documents = np.zeros(len(self._passages_of), dtype=np.bool_)
            documents[[self._documents[one] for one in ids]] = True
            mask = documents[_view(self._document, np.int32)] & (_view(self._alive, np.int8) != 0)
            chosen = Chosen.of(mask, _view(self._document, np.int32), _view(self._passages_of, np.int32))
            if len(self._chosen) >= KEPT:
                self._chosen.clear()
            self._chosen[filter_] = chosen
        return chosen

    def _best(self, slots: NDArray[np.intp], scores: NDArray[np.float64], limit: int) -> list[tuple[str, float]]:
        if len(slots) > limit:
            worst = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            slots, scores = slots[scores >= worst], scores[scores >= worst]
        found = [(self._keys[slot], float(score)) for slot, score in zip(slots, scores, strict=True)]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        return found[:limit]

    def explain(self, key: str, query: Query, statistics: CorpusStatistics) -> dict[str, Any] | None:
        """Lists the parts of a passage's score in `rank`; None where it is not in the index."""
        slot = self._slots.get(key)
        if slot is None:
            return None
        carried = None
        if statistics.bridges is not None:
            carried = self._carried(self._scores(query, statistics, None), statistics.bridges, None).get(slot)
        return explained.explain(self._seen(slot, statistics.near), query, statistics, carried)

    def _cosine(self, slot: int, question: QuestionVector | None) -> float | None:
        """None without a vector of the question's encoder."""
        if question is None or not self._vectors.has(slot, question.encoder):
            return None
        return float(self._vectors.cosines(question.encoder, question.vector, len(self._keys))[slot])

    def _seen(self, slot: int, question: QuestionVector | None) -> explained.Seen:
        return explained.Seen(
            words=self._words[slot],
            title_words=self._title_words[slot],
            in_body=lambda term: _count(*self._body.term(term), slot),
            in_title=lambda term: _count(*self._title.term(term), slot),
            in_pairs=lambda first, second: _count(*self._body.pair(first, second), slot),
            cosine=self._cosine(slot, question),
        )


@lru_cache(64)  # a document's passages come one after another, and share its title and often their path
def _analysed(text: str) -> Analysed:
    return analyse(text)


def _bm25(selection: Selection, query: Query, statistics: CorpusStatistics) -> NDArray[np.float64]:
    """Scores body, title and pairs, float64 [rows]."""
    scores = np.zeros(len(selection.words))
    average = max(statistics.length, 1) / statistics.passages
    title_average = max(statistics.title_length, 1) / statistics.passages
    for term in query.terms:
        weight = bm25.idf(statistics.df.get(term, 0), statistics.passages)
        _add(scores, weight, selection.body.term(term), selection.words, average, bm25.B)
        title = selection.title.term(term)
        _add(scores, bm25.TITLE * weight, title, selection.title_words, title_average, bm25.TITLE_B)
    for first, second in query.pairs:
        weight = bm25.PAIRS * bm25.idf(statistics.df.get(f"{first} {second}", 0), statistics.passages)
        _add(scores, weight, selection.body.pair(first, second), selection.words, average, bm25.B)
    return scores


def _add(
    scores: NDArray[np.float64], weight: float, counts: Counts, lengths: NDArray[np.int32], average: float, b: float
) -> None:
    """Adds a term's part to the rows that hold it; most shards have no passage of most titles and pairs."""
    rows, tf = counts
    if len(rows):
        scores[rows] += weight * bm25.bm25(tf, lengths[rows], average, b)


def _count(slots: NDArray[np.int32], tf: NDArray[np.int32], slot: int) -> int:
    return int(tf[slots == slot].sum())


def _view(values: array[int], dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    """A numpy view; it must be gone before the next append, since an exported array can't grow."""
    return np.frombuffer(values, dtype=dtype) if len(values) else np.zeros(0, dtype=dtype)
