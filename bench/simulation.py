"""A simulated cluster: questions a second and p99 by number of shards, from costs measured on real ones.

    bench/simulation.py measure bench/simulation.json  # here: costs of each hop, and real clusters to check by
    bench/simulation.py show bench/simulation.json [--plot docs/pictures/scale.svg]

A closed model, event by event: each of so many askers sends its next question once the last is answered. An engine and
a shard do one thing at a time, and what runs on a host shares its cores. Costs are processor time, which does not
depend on what else the machine does. A shard holds as many passages as the one that was measured: the corpus grows with
the cluster. Who calls the engine (HTTP), retries and failures are left out.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from simulation_costs import Checked, Costs, measure

from shardqa.config import Settings
from shardqa.engine.reading import stages

SIZES = (1, 3, 10, 30, 100, 300, 1000)
MOST_MESSAGES = 1_500_000  # of one simulated run: a minute of this script
SKIPPED = 0.2  # of a run's questions at its start: the queues fill
SEED = 11


@dataclass(frozen=True, slots=True)
class Cluster:
    shards: int
    engines: int
    cores: int  # of a host
    per_host: int  # shards of a host
    network: float  # seconds from an engine to a shard, one way
    together: bool = False  # engines share the shards' one host, as on the machine that was measured


@dataclass(frozen=True, slots=True)
class Asked:
    """How much of the cluster a question asks."""

    terms: float = 1.0  # share of shards that get Terms: 0 where the engine remembers what they said
    rank: float = 1.0  # share of shards that get Rank: those that hold a word of the question


@dataclass(slots=True)
class Outcome:
    per_second: float
    p50: float  # seconds
    p99: float
    messages: dict[str, float]  # of a question, by kind
    busy: dict[str, float]  # share of time that an engine, and a shard, works
    most: float  # questions a second that no number of askers can exceed: engines or shards would work all the time


Task = tuple[int, float]  # server, seconds of work
Step = tuple[list[Task], float]  # tasks at once, seconds of network before and after each


class Machines:
    """Servers that do one task at a time, on hosts whose cores they share. Tasks start in the order they come."""

    def __init__(self, host_of: Sequence[int], cores: int) -> None:
        self._host_of = host_of
        self._free = [0.0] * len(host_of)
        self._cores = [[0.0] * cores for _ in range(max(host_of) + 1)]
        self.worked = [0.0] * len(host_of)

    def done(self, server: int, now: float, seconds: float) -> float:
        cores = self._cores[self._host_of[server]]
        start = max(now, self._free[server], cores[0])
        end = start + seconds
        heapq.heapreplace(cores, end)
        self._free[server] = end
        self.worked[server] += seconds
        return end


class Simulation:
    def __init__(self, costs: Costs, cluster: Cluster, asked: Asked, k: int, sure: float) -> None:
        self._costs, self._cluster, self._asked = costs, cluster, asked
        self._dice = random.Random(SEED)
        self._stages = stages(k, sure)
        self._messages = Counter[str]()
        hosts = [shard // cluster.per_host for shard in range(cluster.shards)]
        first = 0 if cluster.together else hosts[-1] + 1
        hosts += [first + (0 if cluster.together else n // cluster.cores) for n in range(cluster.engines)]
        self._machines = Machines([0] * len(hosts) if cluster.together else hosts, cluster.cores)

    def run(self, askers: int, questions: int) -> Outcome:
        """`askers` ask `questions` in all."""
        events: list[tuple[float, int, Callable[[float], None]]] = []
        numbers, left, ended = itertools.count(), itertools.count(), list[tuple[float, float]]()

        def at(when: float, act: Callable[[float], None]) -> None:
            heapq.heappush(events, (when, next(numbers), act))

        def ask(now: float) -> None:
            if next(left) < questions:
                steps = self._question()
                go(now, now, steps)

        def go(now: float, start: float, steps: Generator[Step, None, None]) -> None:
            step = next(steps, None)
            if step is None:
                ended.append((start, now))
                ask(now)
                return
            tasks, network = step
            waiting = [len(tasks)]

            def finish(then: float) -> None:
                waiting[0] -= 1
                if not waiting[0]:
                    go(then, start, steps)

            def begin(server: int, seconds: float) -> Callable[[float], None]:
                return lambda then: at(self._machines.done(server, then, seconds) + network, finish)

            for server, seconds in tasks:
                at(now + network, begin(server, seconds))

        for asker in range(askers):
            at(asker * 1e-6, ask)
        while events:
            when, _, act = heapq.heappop(events)
            act(when)
        return self._outcome(sorted(ended, key=lambda one: one[1]), questions)

    def _outcome(self, ended: list[tuple[float, float]], questions: int) -> Outcome:
        first = int(len(ended) * SKIPPED)
        seconds = ended[-1][1] - (ended[first - 1][1] if first else 0.0)
        p50, p99 = np.percentile([end - start for start, end in ended[first:]], [50, 99])
        messages = {kind: count / questions for kind, count in sorted(self._messages.items())}
        worked, total = self._machines.worked, ended[-1][1]
        shards = self._cluster.shards
        busy = {"engine": float(np.mean(worked[shards:])) / total, "shard": float(np.mean(worked[:shards])) / total}
        per_second = (len(ended) - first) / seconds
        most = questions / total / max(busy.values())
        return Outcome(per_second, float(p50), float(p99), messages, busy, most)

    def _question(self) -> Generator[Step, None, None]:
        costs, cluster = self._costs, self._cluster
        engine = cluster.shards + self._dice.randrange(cluster.engines)
        yield [(engine, costs.question)], 0.0
        keeper = self._dice.randrange(cluster.shards)  # of the final answer: it is looked for there, then stored
        yield from self._round("ask", engine, {keeper: costs.plain})
        yield from self._round("Terms", engine, dict.fromkeys(self._some(self._asked.terms), costs.terms))
        yield from self._round("Rank", engine, dict.fromkeys(self._some(self._asked.rank), costs.rank))
        read = self._dice.choice(costs.rows)
        places = [self._dice.randrange(cluster.shards) for _ in range(read)]
        known = Counter[int]()
        for stage in self._stages:
            wanted = Counter(places[:stage])
            gets = {shard: count - known[shard] for shard, count in wanted.items() if count > known[shard]}
            yield from self._round("GET", engine, {shard: costs.get + rows * costs.row for shard, rows in gets.items()})
            known = wanted
            if stage >= read:
                break
        yield from self._round("ask", engine, {keeper: costs.plain})

    def _some(self, share: float) -> list[int]:
        """Shards: all, or as many of them by chance."""
        shards = self._cluster.shards
        if share == 1:
            return list(range(shards))
        count = round(share * shards) if share == 0 else max(1, round(share * shards))
        return self._dice.sample(range(shards), count)

    def _round(self, kind: str, engine: int, work: dict[int, float]) -> Generator[Step, None, None]:
        """The engine sends to shards, they work (seconds by shard), the engine takes their replies."""
        if not work:
            return
        self._messages[kind] += len(work)
        half = len(work) * self._costs.message / 2
        yield [(engine, half)], 0.0
        yield list(work.items()), self._cluster.network
        yield [(engine, half)], 0.0


def simulate(costs: Costs, cluster: Cluster, asked: Asked, askers: int, questions: int) -> Outcome:
    settings = Settings()
    return Simulation(costs, cluster, asked, settings.k, settings.sure).run(askers, questions)


def processor_time(costs: Costs, shards: int) -> float:
    """Of one question on so many shards, engine and shards together, seconds: nothing that waits is in it."""
    outcome = simulate(costs, Cluster(shards, 1, 2, shards, 0.0, together=True), Asked(), 1, 200)
    messages = outcome.messages
    shards_work = messages["Terms"] * costs.terms + messages["Rank"] * costs.rank + messages["GET"] * costs.get
    shards_work += messages["ask"] * costs.plain
    rows = float(np.mean(costs.rows)) * costs.row
    return float(costs.question + sum(messages.values()) * costs.message + shards_work + rows)


WAYS = {
    "every shard is asked": Asked(),
    "terms remembered": Asked(terms=0.0),
    "terms remembered, a word on one shard in ten": Asked(terms=0.0, rank=0.1),
}

app = typer.Typer(add_completion=False, help=__doc__)
File = Annotated[Path, typer.Argument(help="JSON of costs.")]


@app.command("measure")
def measured(
    file: File,
    passages: Annotated[int, typer.Option(help="Paragraphs a shard.", min=20)] = 300,
    questions: Annotated[int, typer.Option(help="Questions asked of each real cluster.", min=10)] = 40,
    sizes: Annotated[str, typer.Option(help="Real clusters, shards each.")] = "1,2,3,6",
) -> None:
    """Measure the costs on one shard, and real clusters beside them."""
    found = measure(passages, questions, [int(size) for size in sizes.split(",")])
    if found is None:
        print("skipped: SQuAD's dev set is not here")
        raise typer.Exit
    file.write_text(json.dumps(found, indent=1) + "\n")
    check(Costs.parse(found["costs"]), [Checked(**one) for one in found["checked"]])


def check(costs: Costs, checked: Sequence[Checked]) -> None:
    print("model : real clusters (processor ms of a question; messages; questions/s at the cores they got)")
    for real in checked:
        costs = replace(costs, rows=real.rows)  # how sure an answer is does not follow from the number of shards
        said = processor_time(costs, real.shards)
        cluster = Cluster(real.shards, 1, max(1, round(real.cores)), real.shards, 0.0, together=True)
        outcome = simulate(costs, cluster, Asked(), real.askers, 400)
        # Whole cores in the model, parts of them in life: both are scaled to one core.
        model = outcome.per_second / max(1, round(real.cores))
        sent = sum(outcome.messages.values())
        print(
            f"  {real.shards} shards: {said * 1e3:6.1f} : {real.processor * 1e3:6.1f} ({said / real.processor:.2f}x)"
            f"   {sent:5.1f} : {real.messages:5.1f} ({sent / real.messages:.2f}x)"
            f"   per core and s {model:5.1f} : {real.per_second / real.cores:5.1f}"
            f" ({model / (real.per_second / real.cores):.2f}x), {real.cores:.1f} cores got"
        )


@app.command()
def show(
    file: File,
    cores: Annotated[int, typer.Option(help="Cores of a host.", min=1)] = 8,
    per_host: Annotated[int, typer.Option(help="Shards of a host.", min=1)] = 4,
    per_engine: Annotated[int, typer.Option(help="Shards for each engine process there is.", min=1)] = 4,
    network: Annotated[float, typer.Option(help="One way, ms.", min=0)] = 0.1,
    plot: Annotated[Path | None, typer.Option(help="PNG or SVG.")] = None,
) -> None:
    """Print questions a second, p99 and messages by number of shards."""
    found = json.loads(file.read_text())
    costs = Costs.parse(found["costs"])
    check(costs, [Checked(**one) for one in found["checked"]])
    print(f"costs from {found['machine']}: {costs.shown()}")
    print(f"hosts of {cores} cores with {per_host} shards, an engine for {per_engine} shards, network {network:g} ms")
    curves: dict[str, list[tuple[int, Outcome, Outcome]]] = {}
    for name, asked in WAYS.items():
        print(f"{name}:")
        for shards in SIZES:
            cluster = Cluster(shards, -(-shards // per_engine), cores, per_host, network / 1e3)
            each = shards * (asked.terms + asked.rank) + 10
            most = max(60, int(MOST_MESSAGES / each / 8))
            askers = max(2, min(4 * shards, most // 2))
            full = simulate(costs, cluster, asked, askers, min(most, max(300, 4 * askers)))
            light = simulate(costs, cluster, asked, 1, min(most, 200))
            curves.setdefault(name, []).append((shards, full, light))
            sent = "  ".join(f"{kind} {count:,.1f}" for kind, count in full.messages.items())
            print(
                f"  {shards:5,} shards, {askers:5,} askers: {full.per_second:8,.1f}/s (at most {full.most:7,.1f})"
                f"  p99 {full.p99 * 1e3:8,.0f} ms  alone {light.p99 * 1e3:6,.0f} ms"
                f"  busy: engine {full.busy['engine']:.2f} shard {full.busy['shard']:.2f}  messages: {sent}"
            )
    if plot is not None:
        draw(curves, plot)


def draw(curves: dict[str, list[tuple[int, Outcome, Outcome]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "scale"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    told: tuple[tuple[str, Callable[[Any, Any], float]], ...] = (
        ("questions a second, at most", lambda full, light: full.most),
        ("p99 of a lone asker, ms", lambda full, light: light.p99 * 1e3),
        ("messages of a question", lambda full, light: sum(full.messages.values())),
    )
    for axis, (title, value) in zip(axes, told, strict=True):
        for name, points in curves.items():
            axis.plot([n for n, _, _ in points], [value(full, light) for _, full, light in points], "o-", label=name)
        axis.set(xscale="log", yscale="log", xlabel="shards", title=title)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    app()
