"""A reference for tests: scores every passage by itself, from its text, in plain Python; the index must equal it.

Same formulas, same order of sums, so its scores equal the index's bit for bit; nothing is shared but `bm25.idf`,
the constants and the analysis of text.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shardqa import keys
from shardqa.analysis import Query, analyse
from shardqa.gears_functions.index import bm25
from shardqa.statistics import CorpusStatistics

(_, B), (TITLE, TITLE_B), (PAIRS, _) = (bm25.WEIGHTS[kind] for kind in bm25.Kind)


@dataclass(slots=True)
class _Scanned:
    key: str
    document: str
    tf: Counter[str]  # terms of the text
    pairs: Counter[tuple[str, str]]  # content terms in a row
    title: Counter[str]
    words: int = field(init=False)
    title_words: int = field(init=False)

    def __post_init__(self) -> None:
        self.words, self.title_words = self.tf.total(), self.title.total()


def rank(passages: Sequence[tuple[str, str, str]], query: Query, limit: int) -> list[tuple[str, float]]:
    """The best of a whole corpus' (key, title, text), with scores, best first, ties by key. Raises BadKey."""
    scanned = [_scan(*passage) for passage in passages]
    statistics = _statistics(scanned, query)
    found = [(p.key, _bm25(p, query, statistics)) for p in scanned]
    return sorted((pair for pair in found if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:limit]


def _scan(key: str, title: str, text: str) -> _Scanned:
    body, head = analyse(text), analyse(title)
    return _Scanned(
        key,
        keys.parse_passage(key).document,
        Counter(body.content + body.stop),
        Counter([*pairwise(body.content), *pairwise(body.stop)]),
        Counter(head.content + head.stop),
    )


def _statistics(scanned: Sequence[_Scanned], query: Query) -> CorpusStatistics:
    df = {term: sum(1 for p in scanned if p.tf[term]) for term in query.terms}
    df |= {f"{a} {b}": sum(1 for p in scanned if p.pairs[a, b]) for a, b in query.pairs}
    return CorpusStatistics(
        passages=len(scanned),
        documents=len({p.document for p in scanned}),
        length=sum(p.words for p in scanned),
        title_length=sum(p.title_words for p in scanned),
        df=df,
        cf={term: sum(p.tf[term] for p in scanned) for term in query.terms},
    )


def _bm25(p: _Scanned, query: Query, statistics: CorpusStatistics) -> float:
    score = 0.0
    average = max(statistics.length, 1) / statistics.passages
    title_average = max(statistics.title_length, 1) / statistics.passages
    for term in query.terms:
        weight = bm25.idf(statistics.df[term], statistics.passages)
        score += weight * _saturated(p.tf[term], p.words, average, B)
        in_title = _saturated(p.title[term], p.title_words, title_average, TITLE_B)
        score += TITLE * weight * in_title
    for a, b in query.pairs:
        weight = PAIRS * bm25.idf(statistics.df[f"{a} {b}"], statistics.passages)
        score += weight * _saturated(p.pairs[a, b], p.words, average, B)
    return score


def _saturated(tf: int, words: int, average: float, b: float) -> float:
    if tf == 0:
        return 0.0
    return tf * (bm25.K1 + 1) / (tf + bm25.K1 * (1 - b + b * (words / average)))
