"""This shard's numbers of a question's words: what `Terms` and `Bridge` reply, and rankings are made of.

Of vectors there are none where the corpus is ranked by its words alone, and no titles where they are not followed.
"""

from collections.abc import Sequence
from dataclasses import replace

from shardqa.analysis import Query
from shardqa.bridges import NamedTitles
from shardqa.gears_functions.shard.keyspace_sync import KeyspaceSync
from shardqa.gears_functions.shard.marks import Marks
from shardqa.statistics import CorpusStatistics


class ShardTerms:
    def __init__(self, sync: KeyspaceSync, lexical: Marks, without_bridges: Marks) -> None:
        self._sync = sync
        self._lexical = lexical
        self._unbridged = without_bridges

    def statistics(self, corpus: str, query: Query, view: str = "") -> CorpusStatistics:
        statistics = self._sync.index(corpus).statistics(query, view)
        if self._lexical.covers(corpus):
            statistics = replace(statistics, vectors={})
        return replace(statistics, titles=0) if self._unbridged.covers(corpus) else statistics

    def titles(self, corpus: str, words: Sequence[Sequence[str]], view: str = "") -> NamedTitles:
        """Returns the titles that these texts name on this shard."""
        titles = self._sync.index(corpus).titles_in(words, view)
        return NamedTitles({}, titles.words) if self._unbridged.covers(corpus) else titles
