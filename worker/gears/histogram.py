"""The times of runs: counts in buckets, four for each doubling, as the module's own (module/src/core/latency.h).

A percentile is the top of its bucket, so at most a quarter too high. Sums of histograms are histograms.
"""

from collections import Counter
from collections.abc import Sequence

BUCKETS = 160  # up to 2**40 us


def bucket_of(microseconds: int) -> int:
    if microseconds < 4:
        return max(microseconds, 0)
    power = microseconds.bit_length() - 1
    return min(4 * (power - 1) + (microseconds >> (power - 2) & 3), BUCKETS - 1)


def top_of(bucket: int) -> int:
    """Returns the largest value of a bucket."""
    return bucket if bucket < 4 else ((bucket % 4 + 5) << (bucket // 4 - 1)) - 1


class RunHistogram:
    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()  # by bucket
        self.total = 0

    def add(self, microseconds: float) -> None:
        self._counts[bucket_of(int(microseconds))] += 1
        self.total += 1

    def pairs(self) -> list[list[int]]:
        """Returns [top in microseconds, count] of each bucket that is not empty."""
        return [[top_of(bucket), self._counts[bucket]] for bucket in sorted(self._counts)]

    def percentile(self, fraction: float) -> int:
        return percentile(self.pairs(), fraction)


def up_to(pairs: Sequence[Sequence[int]], microseconds: int) -> int:
    """Counts the times up to a bound."""
    return sum(count for top, count in pairs if top <= microseconds)


def percentile(pairs: Sequence[Sequence[int]], fraction: float) -> int:
    """Returns the microseconds below which this fraction of times lies; `pairs` in order of tops; 0 without times."""
    rank, count_so_far = int(fraction * sum(count for _, count in pairs)), 0
    for top, count in pairs:
        count_so_far += count
        if count_so_far > rank:
            return top
    return 0
