"""A split reader on a shard against the shipped one: `python bench/split.py [--cut 1 --cut 2] [--questions 60]`.

The readers are made of the shipped one, untrained: its weights with the lowest layers apart. `shardqa models split`
tells what each cut costs in F1. Each question of `seeds/` is asked of all in turn, all five passages read: of the
shipped reader, of each split one where all passages were read before (warm), and where nothing may be kept (cold).
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from common import ROOT, settings_of, temporary_cluster

from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader import push
from shardqa.loader.files import SourceFiles
from shardqa.loader.ingest import ingest
from shardqa.machine import label
from shardqa.models import shipped, squad
from shardqa.models.scoring import SCORING_FILE
from shardqa.models.toolchain.conversion.dequantize import dequantize
from shardqa.models.toolchain.conversion.parts import SPLIT_LAYERS
from shardqa.models.toolchain.conversion.quantize import quantize

SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class Asked:
    """What one way of reading took and said, question by question."""

    name: str
    engine: Engine
    reads: list[float] = field(default_factory=list)  # ms of the network
    totals: list[float] = field(default_factory=list)  # ms
    answers: list[str | None] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    async def ask(self, question: str) -> None:
        answer = await self.engine.ask(question, fresh=True)
        self.reads.append(sum(shard.us.get("read", 0) for shard in answer.shards) / 1e3)
        self.totals.append(answer.timing.total)
        self.answers.append(answer.answer)
        self.scores.append(answer.score)

    def forget(self) -> None:
        for kept in (self.reads, self.totals, self.answers, self.scores):
            kept.clear()


def name_of(cut: int) -> str:
    return f"cut-{cut}"


def make(folder: Path, cuts: Sequence[int]) -> dict[str, Path]:
    """The shipped reader's weights with so many layers apart, in int8."""
    checkpoint, found = folder / "checkpoint", dict[str, Path]()
    dequantize(shipped.folder(), checkpoint)
    shutil.copyfile(shipped.folder() / SCORING_FILE, checkpoint / SCORING_FILE)
    config = json.loads((checkpoint / "config.json").read_text())
    for cut in cuts:
        (checkpoint / "config.json").write_text(json.dumps({**config, SPLIT_LAYERS: cut}))
        found[name_of(cut)] = folder / name_of(cut)
        quantize(checkpoint, found[name_of(cut)])
    return found


async def measure(keeping: LocalCluster, without: LocalCluster, cuts: Sequence[int], texts: Sequence[str]) -> None:
    async with AsyncExitStack() as stack:

        async def opened(cluster: LocalCluster, **changes: str) -> Engine:
            settings = settings_of(cluster).model_copy(update={"sure": 1.0, **changes})
            return await stack.enter_async_context(await Engine.connect(settings))

        with tempfile.TemporaryDirectory(prefix="shardqa-bench-") as folder:
            readers = make(Path(folder), cuts)
            for cluster in (keeping, without):
                engine = await opened(cluster)
                await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), "bench")
                for name, made in readers.items():
                    await push.push(engine, made, name)
        ways = [Asked(SHIPPED, await opened(keeping))]
        for name in readers:
            ways += [Asked(f"{name} warm", await opened(keeping, model=name))]
            ways += [Asked(f"{name} cold", await opened(without, model=name))]
        for text in texts:
            for way in ways:
                await way.ask(text)
        for way in ways:
            way.forget()
        for text in texts:
            for way in ways:
                await way.ask(text)
        tell(ways)


def tell(ways: Sequence[Asked]) -> None:
    full = ways[0]
    print(f"split readers, untrained, {label()}; {len(full.reads)} questions of seeds/, one shard, one thread, k = 5")
    print(f"  {'':14} {'network ms':>10} {'of shipped':>10} {'all ms':>8} {'of shipped':>10} {'same answer':>11}")
    for way in ways:
        read, total = (float(np.median(times)) for times in (way.reads, way.totals))
        of_read, of_total = (
            float(np.median(np.array(mine) / np.array(its)))
            for mine, its in ((way.reads, full.reads), (way.totals, full.totals))
        )
        same = np.mean([one == other for one, other in zip(way.answers, full.answers, strict=True)])
        print(f"  {way.name:14} {read:10.1f} {of_read:10.2f} {total:8.1f} {of_total:10.2f} {same:11.1%}")
    for warm, cold in zip(ways[1::2], ways[2::2], strict=True):
        equal = (warm.answers, warm.scores) == (cold.answers, cold.scores)
        print(f"  {warm.name} and {cold.name}: answers and scores {'equal' if equal else 'DIFFER'}")


def kept(cluster: LocalCluster) -> str:
    with node.connected(cluster.state.port) as client:
        info = client.info("shardqa")
    names = ("kept", "bytes", "hits", "misses", "evictions")
    return ", ".join(f"{name} {info.get(f'shardqa_states_{name}', 0):,}" for name in names)


def main(
    cut: Annotated[list[int] | None, typer.Option(help="Layers apart; 1 and 2 unless given.", min=1)] = None,
    questions: Annotated[int, typer.Option(help="Of seeds/.", min=1)] = 60,
) -> None:
    """Print times of all ways in one run, as ratios to the shipped reader's, question by question."""
    texts = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions][:questions]
    with temporary_cluster(1) as keeping, temporary_cluster(1, module_arguments=("STATES_BYTES", "0")) as without:
        asyncio.run(measure(keeping, without, cut or [1, 2], texts))
        print(f"  kept by the worker: {kept(keeping)}")


if __name__ == "__main__":
    typer.run(main)
