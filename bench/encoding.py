"""Encoding of passages in the background: its speed, and what it costs questions and ingest.

    python bench/encoding.py ENCODER [--passages 300]

ENCODER is a folder of `shardqa-models encoder`. One shard of its own. Three ratios of one run each, so that a machine
that does other work shows in both sides:

* encoded: passages a second while nobody asks, against the same network on the same rows in this process; >= 0.8 wanted
* questions: p50 of new ones while passages are encoded, against afterwards; <= 1.1 wanted
* ingest: documents a second with an encoder in the cluster, against without
"""

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer
from common import SHARED, settings_of, temporary_cluster

from shardqa import machine
from shardqa.engine import Engine
from shardqa.gears_functions.splitting import split
from shardqa.loader import dense
from shardqa.models import embedding, shipped
from shardqa.models.embedding import PassageRow
from shardqa.models.session import open_session
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Document
from shardqa_toolchain import squad

SQUAD = SHARED / "data" / "squad" / "dev-v1.1.json.gz"
LOOK_SECONDS = 0.05
SHIPPED = shipped.encoder_folder()
QUESTIONS = 40  # of each kind


class Measured:
    """A corpus of paragraphs; each round has others."""

    def __init__(self, engine: Engine, questions: squad.QuestionSet, each: int) -> None:
        self._engine = engine
        self._questions = questions
        self._each = each

    def part(self, number: int) -> list[squad.Paragraph]:
        return list(self._questions.paragraphs[number * self._each : (number + 1) * self._each])

    async def ingest(self, corpus: str, number: int) -> float:
        """Documents a second."""
        start = perf_counter()
        for one in self.part(number):
            await self._engine.documents.put(Document(id=one.id, title=one.title, text=one.text, corpus=corpus))
        return self._each / (perf_counter() - start)

    async def encoded(self, corpus: str) -> tuple[int, int]:
        """(passages with a vector, all)."""
        found = next(one for one in (await self._engine.catalogue.corpora()).corpora if one.name == corpus)
        return found.encoded or 0, found.passages

    async def rate(self, corpus: str) -> float:
        """Passages encoded a second until all are, from the first one on."""
        while (first := await self.encoded(corpus))[0] == 0:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(LOOK_SECONDS)
        start = perf_counter()
        while (now := await self.encoded(corpus))[0] < now[1]:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(LOOK_SECONDS)
        return (now[0] - first[0]) / (perf_counter() - start)

    async def asked(self, corpus: str, first: int) -> float:
        """Median seconds of new questions."""
        times = []
        for one in self._questions.questions[first : first + QUESTIONS]:
            start = perf_counter()
            await self._engine.ask(one.text, corpus=corpus, fresh=True)
            times.append(perf_counter() - start)
        return float(np.median(times))


def alone(encoder: Path, paragraphs: list[squad.Paragraph]) -> float:
    """Passages a second of the network itself, in one thread of this process."""
    tokenizer, session = Tokenizer.load(shipped.folder()), open_session(encoder, 1)
    parts = [(one.title, part.text) for one in paragraphs for part in split(one.text, tokenizer)]
    rows = [PassageRow.of(tokenizer, *part).row for part in parts]
    start = perf_counter()
    for row in rows:
        session.run(list(embedding.OUTPUTS), row.feeds())
    return len(rows) / (perf_counter() - start)


async def measure(engine: Engine, encoder: Path, each: int) -> None:
    corpus = Measured(engine, squad.read(SQUAD), each)
    without = await corpus.ingest("bench", 0)
    before = alone(encoder, corpus.part(0))
    await dense.push(engine, encoder)
    rate = await corpus.rate("bench")
    raw = (before + alone(encoder, corpus.part(0))) / 2
    print(f"  encoded: {rate:.1f} passages/s, the network alone {raw:.1f}: {rate / raw:.2f} (wanted >= 0.8)")
    with_encoder = await corpus.ingest("bench", 1)
    print(
        f"  ingest: {with_encoder:.0f} documents/s with an encoder, {without:.0f} without: {with_encoder / without:.2f}"
    )
    meanwhile = await corpus.asked("bench", 0)
    left = await corpus.encoded("bench")
    await corpus.rate("bench")
    after = await corpus.asked("bench", QUESTIONS)
    print(
        f"  questions, p50: {meanwhile * 1e3:.0f} ms while {left[1] - left[0]} passages were left to encode, "
        f"{after * 1e3:.0f} ms afterwards: {meanwhile / after:.2f} (wanted <= 1.1)"
    )


def main(
    encoder: Annotated[Path, typer.Argument(help="an encoder's folder")] = SHIPPED,
    each: Annotated[int, typer.Option("--passages", help="paragraphs of each round")] = 300,
) -> None:
    """Prints the three ratios."""

    async def run() -> None:
        async with await Engine.connect(settings_of(cluster)) as engine:
            await measure(engine, encoder, each)

    print(f"encoding in the background, {machine.label()}")
    with temporary_cluster(shards=1) as cluster:
        asyncio.run(run())


if __name__ == "__main__":
    typer.run(main)
