"""The time of a new question, hop by hop: `python bench/hops.py [--questions 100] [--svg FILE]`.

One shard, so that what is inside another part adds up; the questions of `seeds/`, each new, medians. `--svg` draws the
question of the median as a flame picture: what contains what, and how long.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer
from common import ROOT, settings_of, temporary_cluster

from shardqa.cluster import node
from shardqa.engine import Engine
from shardqa.files.folders import SourceFiles
from shardqa.loader.ingest import ingest
from shardqa.machine import label
from shardqa.schema import Step
from shardqa_toolchain import squad

PHASES = {
    "rank": "the shard's ranking, kept from the round before",
    "load": "passages, tokens from Redis",
    "tokenise": "the question and where pieces stand",
    "read": "the network",
    "span": "spans and sentences",
}
WIDTH, ROW, LETTER = 960, 26, 6.5  # pixels; the last is about as wide as a letter


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    ms: float
    within: tuple["Part", ...] = ()


@dataclass(frozen=True, slots=True)
class Times:
    """Times of one question, ms."""

    total: float
    terms: float
    rank: float
    read: float
    phases: dict[str, float]
    stages: int

    def part(self) -> Part:
        phases = tuple(Part("network" if name == "read" else name, ms) for name, ms in self.phases.items())
        outside = self.read - sum(self.phases.values())
        read = Part("read", self.read, (*phases, Part("Redis, sockets, JSON", outside)))
        rest = self.total - self.terms - self.rank - self.read
        before = (Part("terms", self.terms), Part("rank", self.rank))
        return Part("question", self.total, (*before, read, Part("rest", rest)))


async def asked(engine: Engine, question: str) -> Times:
    steps: list[Step] = []
    answer = await engine.ask(question, fresh=True, on_step=steps.append)
    us: dict[str, float] = dict.fromkeys(PHASES, 0.0)
    for shard in answer.shards:
        for name in PHASES:
            us[name] += shard.us.get(name, 0) / 1e3
    timing = answer.timing
    stages = sum(step.step == "read" for step in steps)
    return Times(timing.total, timing.terms, timing.rank, timing.read, us, stages)


def median(values: list[float]) -> float:
    return float(np.median(values))


def floor(port: int, command: tuple[str, ...]) -> float:
    """Median ms of a command that asks nothing of its server but to answer."""
    seconds = []
    with node.connected(port) as client:
        for _ in range(300):
            began = perf_counter()
            client.execute_command(*command)
            seconds.append(perf_counter() - began)
    return 1e3 * median(seconds)


def svg(part: Part) -> str:
    scale, rows = WIDTH / part.ms, list[str]()

    def draw(piece: Part, left: float, depth: int) -> None:
        width = max(piece.ms * scale, 0.5)
        shade = 86 - 9 * depth
        text = f"{piece.name} {piece.ms:.2f} ms"
        rows.append(
            f'<g><title>{text}</title><rect x="{left:.1f}" y="{depth * ROW}" width="{width:.1f}" height="{ROW - 2}" '
            f'rx="3" fill="hsl({28 + 14 * depth} 80% {shade}%)"/>'
        )
        shown = next((words for words in (text, piece.name) if width > LETTER * len(words) + 8), "")
        if shown:
            rows.append(f'<text x="{left + 6:.1f}" y="{depth * ROW + 16}">{shown}</text>')
        rows.append("</g>")
        for inner in piece.within:
            draw(inner, left, depth + 1)
            left += inner.ms * scale

    draw(part, 0, 0)
    style = "text{font:12px sans-serif;fill:#222}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {3 * ROW}" role="img">'
    return f"{head}<title>Where the time of a new question goes</title><style>{style}</style>{''.join(rows)}</svg>\n"


def main(
    questions: Annotated[int, typer.Option(help="Of seeds/.", min=1)] = 100,
    picture: Annotated[Path | None, typer.Option("--svg", help="File to draw into.")] = None,
) -> None:
    """Print the median of each part."""
    texts = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions][:questions]
    with temporary_cluster(1) as cluster:
        settings = settings_of(cluster)

        async def work() -> list[Times]:
            async with await Engine.connect(settings) as engine:
                await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), settings.corpus)
                for text in texts[:5]:
                    await engine.ask(text, fresh=True)
                return [await asked(engine, text) for text in texts]

        times = asyncio.run(work())
        port = int(cluster.seed().rpartition(":")[2])
        floors = {"PING": floor(port, ("PING",)), "a function: RG.TRIGGER Shard": floor(port, ("RG.TRIGGER", "Shard"))}
    _print(times, floors)
    if picture is not None:
        ordered = sorted(times, key=lambda one: one.total)
        picture.write_text(svg(ordered[len(ordered) // 2].part()))


def _print(times: list[Times], floors: dict[str, float]) -> None:
    print(f"hops of a new question, {label()}; {len(times)} questions of seeds/, one shard, one thread; medians, ms")
    rows = {
        "all of it": [one.total for one in times],
        "terms: statistics of the question's words": [one.terms for one in times],
        "rank: the best passages": [one.rank for one in times],
        "read: GETs that the reader fills": [one.read for one in times],
        **{f"  {name}: {what}": [one.phases[name] for one in times] for name, what in PHASES.items()},
        "  Redis, sockets, JSON": [one.read - sum(one.phases.values()) for one in times],
    }
    for name, values in rows.items():
        print(f"  {name:58} {median(values):8.2f}")
    print(f"  {'stages read':58} {np.mean([one.stages for one in times]):8.2f} (mean)")
    for name, ms in floors.items():
        print(f"  floor: {name:51} {ms:8.2f}")


if __name__ == "__main__":
    typer.run(main)
