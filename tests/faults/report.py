"""The report of a soak: counts, times, slopes, violations."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tests.faults.checker import Violation

WANTED = {  # seconds
    "worker killed": 2.0,
    "worker hung": 5.0,
}
AFTER_FAILOVER = 2.0  # seconds until all is whole once the replica is master
RETRIES = 0.005  # of all questions
PING = 3.0  # times the idle p99
WARM_SECONDS = 30.0  # of a series that do not count: caches fill, a replica takes its copy
LASTING_SECONDS = 60.0  # that a series must go on for then
SHOWN = 5  # violations and faults in full


@dataclass(slots=True)
class Recovery:
    """Seconds from one harm until all was well."""

    name: str
    failover: float | None  # until the replica was master
    asks: float  # until a question begun after it was answered by all shards
    writes: float  # until a write on the harmed shard was acknowledged


Process: TypeAlias = tuple[str, int, str]  # its kind, pid and role: a restart begins another, a failover too
Memory: TypeAlias = dict[Process, list[tuple[float, float]]]  # seconds of the clock and megabytes, in their order


def percentile(values: Sequence[float], q: float) -> float:
    return float(np.percentile(np.asarray(values), q)) if len(values) else float("nan")


def counts(outcomes: Counter[str]) -> Iterable[str]:
    for name, count in sorted(outcomes.items()):
        yield f"  {name:44} {count}"
    asked = sum(count for name, count in outcomes.items() if name.startswith("asked"))
    retries = sum(count for name, count in outcomes.items() if name.startswith("asked, told"))
    yield f"  {'questions told to retry':44} {retries / max(asked, 1):.2%} (wanted < {RETRIES:.1%})"


def recoveries(harms: Sequence[Recovery]) -> Iterable[str]:
    yield f"  {'':44} {'times':>5} {'failover':>9} {'asked by all':>13} {'written':>8}   median / worst, s"
    by_name = defaultdict[str, list[Recovery]](list)
    for harm in harms:
        by_name[harm.name].append(harm)
    for name, ones in sorted(by_name.items()):
        failovers = [one.failover for one in ones if one.failover is not None]
        wanted = f"wanted {WANTED[name]:g}" if name in WANTED else ""
        if failovers:
            after = [one.asks - one.failover for one in ones if one.failover is not None]
            wanted = f"after the failover {percentile(after, 50):.1f} / {max(after):.1f}, wanted {AFTER_FAILOVER:g}"
        yield (
            f"  {name:44} {len(ones):5} {_pair(failovers):>9} {_pair([one.asks for one in ones]):>13} "
            f"{_pair([one.writes for one in ones]):>8}   {wanted}"
        )


def _pair(values: Sequence[float]) -> str:
    return f"{percentile(values, 50):.1f}/{max(values):.1f}" if values else "-"


def memory(sizes: Memory) -> Iterable[str]:
    """Megabytes a minute within the life of each process: a young one beside an old one would look like a loss."""
    slopes: dict[str, list[float]] = {kind: [] for kind, *_ in sorted(sizes)}
    for (kind, *_), series in sizes.items():
        old = [(at, size) for at, size in series if at - series[0][0] >= WARM_SECONDS]
        if old and (seconds := old[-1][0] - old[0][0]) >= LASTING_SECONDS:
            slopes[kind].append((old[-1][1] - old[0][1]) * 60 / seconds)
    for kind, found in slopes.items():
        shown = ", ".join(f"{slope:+.2f}" for slope in sorted(found))
        yield f"  {kind:44} {shown or f'no process of {WARM_SECONDS + LASTING_SECONDS:g} s'} MB/min"


def used(before: Mapping[int, float], after: Mapping[int, float], bare: Mapping[int, float]) -> Iterable[str]:
    """Megabytes that each Redis says it uses: before the load, after it, and then without the answers it keeps."""
    for port in sorted(before):
        yield (
            f"  {f'Redis {port}':44} {before[port]:.1f} MB before, {after[port]:.1f} after, "
            f"{bare[port]:.1f} without kept answers: {bare[port] - before[port]:+.1f}"
        )


def pings(idle: Sequence[float], loaded: Sequence[float]) -> Iterable[str]:
    before, under = percentile(idle, 99), percentile(loaded, 99)
    yield f"  {'PING p99, idle':44} {before:.2f} ms of {len(idle)}"
    yield f"  {'PING p99, under all of it':44} {under:.2f} ms of {len(loaded)}: {under / before:.1f}x, wanted {PING:g}x"


def violations(violations: Sequence[Violation], faults: Sequence[str], lag: float) -> Iterable[str]:
    kinds = Counter(violation.kind for violation in violations)
    for kind in ("lost", "resurrected", "stale", "unknown", "missed", "early"):
        yield f"  {kind:44} {kinds[kind]}"
    yield f"  {'other faults':44} {len(faults)}"
    yield f"  {'kept answers behind, at most':44} {lag:.3f} s"
    yield from (str(violation) for violation in violations[:SHOWN])
    yield from (f"    {fault}" for fault in faults[: 4 * SHOWN])
