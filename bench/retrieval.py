"""Ranking alone, without Redis: recall on a SQuAD file for 1, 2 and 5 shards, and how long a shard takes.

    python bench/retrieval.py [--squad ../shared/data/squad/dev-v1.1.json.gz] [--limit 2000]

Every paragraph is a document; a document's rank is its best passage's. Lists must be equal on any number of shards.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from shardqa import bridges, keys
from shardqa.analysis import Query, query
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.splitting import Passage, split
from shardqa.models import shipped
from shardqa.models.metrics import mean_reciprocal_rank, recall_at
from shardqa.models.tokenizer import Tokenizer
from shardqa.statistics import CorpusStatistics, QuestionVector, total
from shardqa_toolchain import squad

CORPUS = "squad"
PASSAGES = 60  # asked of each shard: at least 20 documents are among them
BIG = 30_000  # passages of the index whose speed is measured


@dataclass
class Measured:
    """Measurements of one number of shards."""

    ranks: list[int | None]  # of each question's document, from 1; None: not among the first PASSAGES
    lists: list[list[tuple[str, float]]]  # of each question's passages
    seconds: list[float]  # one shard's ranking


Split = list[tuple[squad.Paragraph, list[Passage]]]


def shards_of(paragraphs: Split, count: int) -> list[Index]:
    """Documents spread as their buckets are."""
    shards = [Index() for _ in range(count)]
    for paragraph, passages in paragraphs:
        shard = shards[int(keys.bucket(paragraph.id)[1:]) % count]
        for n, passage in enumerate(passages):
            shard.put(
                keys.passage(CORPUS, paragraph.id, n), paragraph.title.replace("_", " "), passage.text, passage.end
            )
    return shards


def measure(shards: Sequence[Index], questions: Sequence[squad.SquadQuestion]) -> Measured:
    figures = Measured([], [], [])
    for question in questions:
        terms = query(keys.normalise_question(question.text))
        statistics = total(shard.statistics(terms) for shard in shards)
        for shard in shards:
            start = perf_counter()
            shard.rank(terms, statistics, PASSAGES)
            figures.seconds.append(perf_counter() - start)
        found = ranked(shards, terms, PASSAGES)
        documents = list(dict.fromkeys(keys.parse_passage(key).document for key, _ in found))
        figures.ranks.append(documents.index(question.document) + 1 if question.document in documents else None)
        figures.lists.append(found)
    return figures


def ranked(
    shards: Sequence[Index], terms: Query, limit: int, near: QuestionVector | None = None, is_bridged: bool = True
) -> list[tuple[str, float]]:
    """The best passages of all shards, in the rounds that an engine takes."""
    statistics = total(shard.statistics(terms) for shard in shards).compared(near)
    if is_bridged and statistics.is_bridged:
        statistics = replace(statistics, bridges=leading(shards, terms, statistics))
    found = [pair for shard in shards for pair in shard.rank(terms, statistics, limit)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]


def leading(shards: Sequence[Index], terms: Query, statistics: CorpusStatistics) -> bridges.Bridges | None:
    """Returns what the first passages name."""
    lists = [shard.rank(terms, statistics, bridges.FIRST) for shard in shards]
    told = [(found, shard.first_words(found)) for shard, found in zip(shards, lists, strict=True)]
    first = bridges.first_passages(told)
    named = bridges.counted(shard.titles_in([one.words for one in first]) for shard in shards)
    return bridges.build(first, named, statistics.passages)


def big_index(paragraphs: Split) -> Index:
    """Returns an index of the paragraphs, again and again under other names, until there are BIG passages."""
    index, round = Index(), 0
    while len(index) < BIG:
        for paragraph, passages in paragraphs:
            for n, passage in enumerate(passages):
                index.put(
                    keys.passage(CORPUS, f"{round}/{paragraph.id}", n), paragraph.title, passage.text, passage.end
                )
        round += 1
    return index


def main(
    squad_file: Annotated[Path, typer.Option("--squad", help="SQuAD JSON, also gzipped")] = Path(
        "../shared/data/squad/dev-v1.1.json.gz"
    ),
    limit: Annotated[int | None, typer.Option(help="questions asked of each number of shards; all by default")] = None,
) -> None:
    """Prints recall, whether the lists agree, and times."""
    tokenizer = Tokenizer.load(shipped.folder())
    questions = squad.read(squad_file)
    start = perf_counter()
    paragraphs = [(paragraph, split(paragraph.text, tokenizer)) for paragraph in questions.paragraphs]
    splitting = perf_counter() - start
    characters = sum(len(paragraph.text) for paragraph in questions.paragraphs)
    passages = sum(len(found) for _, found in paragraphs)
    print(f"{len(paragraphs)} documents, {characters:,} characters, {passages} passages; split in {splitting:.2f} s")
    print(*(f"{name:>10}" for name in ("shards", "recall@1", "@5", "@20", "MRR", "rank p50", "p99")), "", "lists")
    first: Measured | None = None
    for count in (1, 2, 5):
        measured = measure(shards_of(paragraphs, count), questions.questions[:limit])
        same = "" if first is None else "equal to 1 shard's" if first.lists == measured.lists else "DIFFERENT"
        columns = [f"{text:>10}" for text in (str(count), *_recalls(measured.ranks), *_times(measured.seconds))]
        print(*columns, "", same)
        first = first or measured
    times = _times(measure([big_index(paragraphs)], questions.questions[:500]).seconds)
    print(f"one shard of {BIG:,} passages: rank p50 {times[0]}, p99 {times[1]}")


def _recalls(ranks: Sequence[int | None]) -> list[str]:
    return [*(f"{100 * recall_at(k, ranks):.2f}" for k in (1, 5, 20)), f"{mean_reciprocal_rank(ranks):.4f}"]


def _times(seconds: Sequence[float]) -> tuple[str, str]:
    p50, p99 = np.percentile(np.asarray(seconds) * 1e3, [50, 99])
    return f"{p50:.2f} ms", f"{p99:.2f} ms"


if __name__ == "__main__":
    typer.run(main)
