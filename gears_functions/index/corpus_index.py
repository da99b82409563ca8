"""One corpus on one shard: its passages' terms, titles and documents, in memory; ranks them for a question.

Rebuilt from the `passage:` keys, never stored. One thread: the worker's loop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardqa import bridges, keys
from shardqa.analysis import Analysed, Query, analyse
from shardqa.gears_functions.index import bm25, bridge_gains, explained, vectors
from shardqa.gears_functions.index.catalogue import DocumentInfo, IndexCatalogue
from shardqa.gears_functions.index.passage_table import PassageTable, as_array
from shardqa.gears_functions.index.selection import Chosen, Field, Selection
from shardqa.gears_functions.index.titles import Titles
from shardqa.models.embedding import StoredVectors, text_digest
from shardqa.statistics import CorpusStatistics

FILTERS_KEPT = 16  # filters whose passages are remembered while nothing changes


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
        self.table = PassageTable()
        self.catalogue = IndexCatalogue()  # of the documents that have passages
        self.titles = Titles()  # of those whose first passage is here
        self._chosen: dict[str, Chosen] = {}  # by filter: what it lets through, kept until something changes

    def __len__(self) -> int:
        return len(self.table.slots)

    def __contains__(self, key: str) -> bool:
        return key in self.table.slots

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.table.slots))

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
        """Adds or replaces a passage; returns False where it was there with all the same. Raises BadKey.

        `end` is where the passage ends in its document, characters; `info` comes with the first passage; words of the
        `path` count as the title's. `words` are those of the text, where they are known.
        """
        fingerprint = hash((title, text, end, info, path))
        slot = self.table.slots.get(key)
        if slot is not None and self.table.fingerprints[slot] == fingerprint:
            return False
        name = keys.parse_passage(key)
        self.remove(key)
        self._chosen.clear()
        title_words, below = _analysed(title), _analysed(path)
        head = Analysed(title_words.content + below.content, title_words.stop + below.stop)
        if name.n == 0:
            self.titles.put(name.document, title, title_words)
        if not self.table.count_of(name.document):
            self.catalogue.add(name.document)
        body, digest = words or analyse(text), text_digest(title, text)
        self.table.append(key, name.document, body, head, end, fingerprint, digest)
        if info is not None:
            self.catalogue.describe(name.document, title, info)
        return True

    def put_vectors(self, key: str, stored: StoredVectors) -> bool:
        """Gives a passage its vectors; returns False where it is not here, or they are of another text."""
        slot = self.table.slots.get(key)
        if slot is None or stored.digest != self.table.digests[slot]:
            return False
        self.table.vectors.put(slot, stored.encoder, stored.vectors)
        return True

    def remove(self, key: str) -> bool:
        """Removes a passage; returns False where it was not there."""
        if not self.table.remove(key):
            return False
        self._chosen.clear()
        passage = keys.parse_passage(key)
        if passage.n == 0:
            self.titles.remove(passage.document)
        if not self.table.count_of(passage.document):
            self.catalogue.remove(passage.document)
        return True

    # ---- asking

    def statistics(self, query: Query, view: str = "") -> CorpusStatistics:
        """Returns this shard's numbers for the terms and pairs of a question, in the documents that `view` shows.

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
        table = self.table
        counts = (len(self), table.count_of_documents(), table.length, table.title_length)
        return CorpusStatistics(*counts, df, cf, table.vectors.counts(), titles=len(self.titles))

    def _totals_of(self, view: str, df: dict[str, int], cf: dict[str, int]) -> CorpusStatistics:
        choice = self._of_filter(view)
        selection = self._selected(choice)
        return CorpusStatistics(
            len(choice.slots),
            len(choice.passages_of),
            int(selection.words.sum()),
            int(selection.title_words.sum()),
            df,
            cf,
            self.vectors(view),
            titles=self.titles.among(self.catalogue.chosen(view)),
        )

    def near(self, term: str, room: int, most: int) -> Iterator[tuple[str, int, list[str]]]:
        """Yields terms of which at most `room` letters differ, how many passages have each, and the keys of some."""
        living = self.table.living()
        for other in self.table.body.near(term, room):
            slots = self.table.body.term(other)[0]
            if len(slots := slots[living[slots]]):
                yield other, len(slots), [self.table.keys[slot] for slot in slots[:most]]

    def sizes(self, view: str = "") -> PartSizes:
        """Returns the sizes of the documents that `view` shows, summed up. Raises BadFilter."""
        if not view:
            documents = self.table.count_of_documents()
            return PartSizes(documents, len(self), self.table.characters(), self.catalogue.bytes)
        choice, ids = self._of_filter(view), self.catalogue.chosen(view)
        ends = np.zeros(len(choice.passages_of), dtype=np.int64)
        np.maximum.at(ends, choice.document, as_array(self.table.ends)[choice.slots])
        return PartSizes(len(ids), len(choice.slots), int(ends.sum()), self.catalogue.bytes_of(ids))

    def vectors(self, view: str = "") -> dict[str, int]:
        """Returns how many passages that `view` shows have vectors, by encoder."""
        if not view:
            return self.table.vectors.counts()
        mask, vectors = self._of_filter(view).mask, self.table.vectors
        counts = {one: int(np.count_nonzero(mask[vectors.slots(one)])) for one in vectors.counts()}
        return {encoder: count for encoder, count in counts.items() if count}

    def without_vector(self, encoder: str, limit: int) -> list[str]:
        """Returns the keys of at most `limit` passages without vectors of this encoder."""
        if self.table.vectors.counts().get(encoder) == len(self):
            return []
        lacking = self.table.living()
        lacking[self.table.vectors.slots(encoder)] = False
        return [self.table.keys[slot] for slot in np.flatnonzero(lacking)[:limit]]

    def titled(self, query: Query, view: str = "") -> dict[str, int]:
        """Returns how many passages' titles hold each term of the question; without the terms that none does."""
        title = self._seen_by(view).title
        counts = {term: len(title.term(term)[0]) for term in query.terms}
        return {term: count for term, count in counts.items() if count}

    def rank(
        self, query: Query, statistics: CorpusStatistics, limit: int, filter_: str = ""
    ) -> list[tuple[str, float]]:
        """Returns the best `limit` passages with their scores, best first, ties by key.

        Only those that the question touches, and of the documents that `filter_` (canonical) lets through: a passage
        has the same score with it and without, as the statistics stay those of all documents that the asker may see.
        Raises BadFilter.
        """
        if not self.table.slots or not statistics.passages:
            return []
        choice = self._of_filter(filter_) if filter_ else None
        scores = self._scores(query, statistics, choice)
        if statistics.bridges is not None:
            for row, gain in bridge_gains.gains(scores, statistics.bridges, self.table, self.titles, choice).items():
                scores[row] += gain.score
        rows = np.flatnonzero(scores > 0)
        return _best(self.table.keys, rows if choice is None else choice.slots[rows], scores[rows], limit)

    def _scores(self, query: Query, statistics: CorpusStatistics, choice: Chosen | None) -> NDArray[np.float64]:
        """Returns the scores of the rows before any bridge, float64 [rows]."""
        selection = self._everything() if choice is None else self._selected(choice)
        scores = selection.scores(query, statistics)
        if statistics.near is not None:
            cosines = self.table.vectors.cosines(statistics.near.encoder, statistics.near.vector, len(self.table.keys))
            idf = bm25.total_idf(query, statistics)
            scores = vectors.fused(scores, cosines if choice is None else cosines[choice.slots], idf)
        if choice is None:
            scores[~self.table.living()] = 0.0
        return scores

    def first_words(self, pairs: Sequence[tuple[str, float]]) -> list[list[str]]:
        """Returns the content terms of the first passages of a ranking, in order."""
        return [self.table.body.first_part(self.table.slots[key]) for key, _ in pairs[: bridges.FIRST]]

    def titles_in(self, words: Sequence[Sequence[str]], view: str = "") -> bridges.NamedTitles:
        """Returns the titles that these texts name, of what `view` shows, with counts. Raises BadFilter."""
        titles = sorted(set[str]().union(*map(self.titles.named_in, words)))
        body = self._seen_by(view).body
        times = {word: body.times(word) for word in sorted({word for text in words for word in text})}
        ids_of_view = self.catalogue.chosen(view) if view else None
        bearers = {title: self.titles.count(title, ids_of_view) for title in titles}
        borne = {title: count for title, count in bearers.items() if count}
        return bridges.NamedTitles(borne, {word: count for word, count in times.items() if count})

    def _seen_by(self, view: str) -> Selection:
        return self._selected(self._of_filter(view)) if view else self._everything()

    def _everything(self) -> Selection:
        dead = len(self.table.slots) < len(self.table.keys)
        alive = self.table.living() if dead else None
        return Selection(
            Field(self.table.body, alive, None),
            Field(self.table.title, alive, None),
            as_array(self.table.words),
            as_array(self.table.title_words),
        )

    def _selected(self, choice: Chosen) -> Selection:
        return Selection(
            Field(self.table.body, choice.mask, choice),
            Field(self.table.title, choice.mask, choice),
            as_array(self.table.words)[choice.slots],
            as_array(self.table.title_words)[choice.slots],
        )

    def _of_filter(self, filter_: str) -> Chosen:
        choice = self._chosen.get(filter_)
        if choice is None:
            ids = self.catalogue.chosen(filter_)
            documents = np.zeros(len(self.table.passages_of), dtype=np.bool_)
            documents[[self.table.numbers[one] for one in ids]] = True
            mask = documents[as_array(self.table.document)] & self.table.living()
            choice = Chosen.of(mask, as_array(self.table.document), as_array(self.table.passages_of))
            if len(self._chosen) >= FILTERS_KEPT:
                self._chosen.clear()
            self._chosen[filter_] = choice
        return choice

    def explain(self, key: str, query: Query, statistics: CorpusStatistics) -> dict[str, Any] | None:
        """Returns the parts of a passage's score in `rank`; None where it is not in the index."""
        slot = self.table.slots.get(key)
        if slot is None:
            return None
        gain = None
        if statistics.bridges is not None:
            scores = self._scores(query, statistics, None)
            gain = bridge_gains.gains(scores, statistics.bridges, self.table, self.titles, None).get(slot)
        cosine = self.table.vectors.cosine(slot, statistics.near, len(self.table.keys))
        signals, idf = self._everything().signals(query, statistics), bm25.total_idf(query, statistics)
        return explained.explain(signals, slot, cosine, idf if statistics.near else None, gain)


@lru_cache(64)  # a document's passages come one after another, and share its title and often their path
def _analysed(text: str) -> Analysed:
    return analyse(text)


def _best(
    keys: Sequence[str], slots: NDArray[np.intp], scores: NDArray[np.float64], limit: int
) -> list[tuple[str, float]]:
    """Returns the `limit` best, best first, ties by key."""
    if len(slots) > limit:
        worst = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        slots, scores = slots[scores >= worst], scores[scores >= worst]
    best = [(keys[slot], float(score)) for slot, score in zip(slots, scores, strict=True)]
    best.sort(key=lambda pair: (-pair[1], pair[0]))
    return best[:limit]
