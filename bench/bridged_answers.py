"""What following titles does for answers, and what it costs: questions that need two documents, on one shard and three.

    python bench/bridged_answers.py [--limit 300] [--shards 1] [--k 5]

HotpotQA's paragraphs are a document each. All questions are asked without bridges, then with them, nothing kept; F1 is
of the best candidate, however sure (forced). Times are medians of this run: compare the two columns, not runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from common import SHARED, settings_of, temporary_cluster
from dense import Wanted, read

from shardqa.engine import Engine
from shardqa.machine import label
from shardqa.models import metrics, shipped, squad
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Document

HOTPOT = SHARED / "data" / "domains" / "hotpotqa-sub.json.gz"
WARM = 10  # questions asked before


class Found:
    """Of one way."""

    def __init__(self) -> None:
        self.f1: list[float] = []
        self.em: list[float] = []
        self.both: list[bool] = []  # documents were among those read
        self.total: list[float] = []  # ms
        self.rank: list[float] = []
        self.led = 0  # questions where a title led somewhere


async def ask(engine: Engine, wanted: Wanted, answers: Sequence[str], k: int, found: Found) -> None:
    ranked = await engine.rank(engine.question(wanted.question), k)
    found.led += ranked.bridges is not None
    found.both.append(set(wanted.documents) <= {one.document for one in ranked.passages})
    answer = await engine.ask(wanted.question, k=k, fresh=True)
    best = answer.n_best[0].answer if answer.n_best else ""
    found.f1.append(metrics.f1(best, answers))
    found.em.append(metrics.exact_match(best, answers))
    found.total.append(answer.timing.total)
    found.rank.append(answer.timing.rank)


async def work(engine: Engine, limit: int, k: int) -> dict[bool, Found]:
    pieces, questions = read("hotpot", Tokenizer.load(shipped.folder()), 2_000)
    texts: dict[str, list[str]] = {}
    for piece in pieces:
        texts.setdefault(piece.document, []).append(piece.text)
    documents = [Document(id=id, title=id, text=" ".join(parts)) for id, parts in texts.items()]
    for n in range(0, len(documents), 64):
        await asyncio.gather(*map(engine.put, documents[n : n + 64]))
    answers = {one.text: one.answers for one in squad.read(HOTPOT).questions}
    some = [questions[n] for n in sorted(np.random.default_rng(7).permutation(len(questions))[:limit])]
    found = {True: Found(), False: Found()}
    for is_on in (False, True):
        await engine.choose_bridges(engine.settings.corpus, is_on)
        for one in some[:WARM]:
            await ask(engine, one, answers[one.question], k, Found())
        for one in some:
            await ask(engine, one, answers[one.question], k, found[is_on])
    return found


def main(
    limit: Annotated[int, typer.Option(help="questions")] = 300,
    shards: Annotated[int, typer.Option(help="masters")] = 1,
    k: Annotated[int, typer.Option(help="passages read")] = 5,
) -> None:
    """Prints F1, how often both documents are read, and ms."""
    with temporary_cluster(shards) as cluster:
        settings = settings_of(cluster)

        async def run() -> dict[bool, Found]:
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
