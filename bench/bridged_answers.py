"""Answers with titles followed and without, and the cost: questions that need two documents, on one shard and three.

    python bench/bridged_answers.py [--limit 300] [--shards 1] [--k 5]

HotpotQA's paragraphs are a document each. All questions are asked without bridges, then with them, nothing kept; F1 is
of the best candidate, however sure (forced). Times are medians of this run: compare the two columns, not runs.
"""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from common import SHARED, settings_of, temporary_cluster
from dense import Need, read

from shardqa.engine import Engine
from shardqa.machine import label
from shardqa.models import metrics, shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Document
from shardqa_toolchain import squad

HOTPOT = SHARED / "data" / "domains" / "hotpotqa-sub.json.gz"
WARM = 10  # questions asked before


class Figures:
    """Figures of all questions, with bridges or without."""

    def __init__(self) -> None:
        self.f1: list[float] = []
        self.em: list[float] = []
        self.both: list[bool] = []  # documents were among those read
        self.total: list[float] = []  # ms
        self.rank: list[float] = []
        self.led = 0  # questions where a title led somewhere


async def ask(engine: Engine, need: Need, answers: Sequence[str], k: int, figures: Figures) -> None:
    ranked = await engine.ranking.rank(engine.question(need.question), k)
    figures.led += ranked.bridges is not None
    figures.both.append(set(need.documents) <= {one.document for one in ranked.passages})
    answer = await engine.ask(need.question, k=k, fresh=True)
    best = answer.n_best[0].answer if answer.n_best else ""
    figures.f1.append(metrics.f1(best, answers))
    figures.em.append(metrics.exact_match(best, answers))
    figures.total.append(answer.timing.total)
    figures.rank.append(answer.timing.rank)


async def work(engine: Engine, limit: int, k: int) -> dict[bool, Figures]:
    pieces, questions = read("hotpot", Tokenizer.load(shipped.folder()), 2_000)
    texts: dict[str, list[str]] = {}
    for piece in pieces:
        texts.setdefault(piece.document, []).append(piece.text)
    documents = [Document(id=id, title=id, text=" ".join(parts)) for id, parts in texts.items()]
    for n in range(0, len(documents), 64):
        await asyncio.gather(*map(engine.documents.put, documents[n : n + 64]))
    answers = {one.text: one.answers for one in squad.read(HOTPOT).questions}
    some = [questions[n] for n in sorted(np.random.default_rng(7).permutation(len(questions))[:limit])]
    figures = {True: Figures(), False: Figures()}
    for is_on in (False, True):
        await engine.catalogue.switch(engine.settings.corpus, "bridges", is_on)
        for one in some[:WARM]:
            await ask(engine, one, answers[one.question], k, Figures())
        for one in some:
            await ask(engine, one, answers[one.question], k, figures[is_on])
    return figures


def main(
    limit: Annotated[int, typer.Option(help="questions")] = 300,
    shards: Annotated[int, typer.Option(help="masters")] = 1,
    k: Annotated[int, typer.Option(help="passages read")] = 5,
) -> None:
    """Prints F1, how often both documents are read, and ms."""
    with temporary_cluster(shards) as cluster:
        settings = settings_of(cluster)

        async def run() -> dict[bool, Figures]:
            async with await Engine.connect(settings) as engine:
                return await work(engine, limit, k)

        found = asyncio.run(run())
    print(f"hotpot, {limit} questions, {shards} shards, k={k}, {label()}")
    for is_on, one in found.items():
        print(
            f"  bridges {'on ' if is_on else 'off'}  both read {100 * np.mean(one.both):.1f} %  "
            f"EM {100 * np.mean(one.em):.1f}  F1 {100 * np.mean(one.f1):.1f}  led on {100 * one.led / limit:.0f} %  "
            f"ms: question {np.median(one.total):.1f}, rank {np.median(one.rank):.2f}"
        )


if __name__ == "__main__":
    typer.run(main)
