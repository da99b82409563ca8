"""What a soak prints: counts, times, slopes, violations."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.faults.checker import Violation

WANTED = {  # seconds
    "worker killed": 2.0,
    "worker hung": 5.0,
}
AFTER_FAILOVER = 2.0  # seconds until all is whole once the replica is master
RETRIES = 0.005  # of all questions
PING = 3.0  # times the idle p99
SHOWN = 5  # violations and faults in full


@dataclass(slots=True)
class Recovery:
    """Of one harm: seconds from the harm."""

    name: str
    failover: float | None  # until the replica was master
    asks: float  # until a question begun after it was answered by all shards
    writes: float  # until a write on the harmed shard was acknowledged


@dataclass(slots=True)
class Memory:
    """Megabytes by role, as (seconds, process, resident)."""

    samples: dict[str, list[tuple[float, int, float]]] = field(default_factory=lambda: defaultdict(list))

    def slope(self, role: str, after: float = 30.0) -> tuple[float, float, float] | None:
        """(first, last, megabytes an hour) of processes older than `after` seconds, averaged by time."""
        born = dict[int, float]()
        for at, pid, _ in self.samples[role]:
            born.setdefault(pid, at)
        old = [(at, size) for at, pid, size in self.samples[role] if at - born[pid] >= after]
        if len({at for at, _ in old}) < 3:
            return None
        at, size = np.asarray(old).T
        third = max(1, len(size) // 3)
        return float(np.mean(size[:third])), float(np.mean(size[-third:])), float(np.polyfit(at, size, 1)[0] * 3600)


def percentile(values: Sequence[float], q: float) -> float:
    return float(np.percentile(np.asarray(values), q)) if len(values) else float("nan")


def counts(found: Counter[str]) -> Iterable[str]:
    for name, count in sorted(found.items()):
        yield f"  {name:44} {count}"
    asked = sum(count for name, count in found.items() if name.startswith("asked"))
    told = sum(count for name, count in found.items() if name.startswith("asked, told"))
    yield f"  {'questions told to retry':44} {told / max(asked, 1):.2%} (wanted < {RETRIES:.1%})"


def recoveries(found: Sequence[Recovery]) -> Iterable[str]:
    yield f"  {'':44} {'times':>5} {'failover':>9} {'asked by all':>13} {'written':>8}   median / worst, s"
    by_name = defaultdict[str, list[Recovery]](list)
    for one in found:
        by_name[one.name].append(one)
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


def memory(found: Memory) -> Iterable[str]:
    for role in sorted(found.samples):
        slope = found.slope(role)
        if slope is not None:
            first, last, hourly = slope
            yield f"  {role:44} {first:.0f} MB in the first third, {last:.0f} in the last, {hourly:+.1f} MB/hour"


def pings(idle: Sequence[float], loaded: Sequence[float]) -> Iterable[str]:
    before, under = percentile(idle, 99), percentile(loaded, 99)
    yield f"  {'PING p99, idle':44} {before:.2f} ms of {len(idle)}"
    yield f"  {'PING p99, under all of it':44} {under:.2f} ms of {len(loaded)}: {under / before:.1f}x, wanted {PING:g}x"


def violations(found: Sequence[Violation], faults: Sequence[str], lag: float) -> Iterable[str]:
    kinds = Counter(violation.kind for violation in found)
    for kind in ("lost", "resurrected", "stale", "unknown", "missed", "early"):
        yield f"  {kind:44} {kinds[kind]}"
    yield f"  {'other faults':44} {len(faults)}"
    yield f"  {'kept answers behind, at most':44} {lag:.3f} s"
    yield from (str(violation) for violation in found[:SHOWN])
    yield from (f"    {fault}" for fault in faults[: 4 * SHOWN])
