"""Ranking 30,000 passages with a filter that keeps 1 % of them against ranking them without: one shard's index alone.

    python bench/filter.py

Each question comes with a filter of its own that was never asked before, and then once more. Times are of the
processor: what else the machine does falls on the three alike.
"""

import json
from random import Random
from statistics import median
from time import thread_time

from shardqa import filters, keys
from shardqa.analysis import query
from shardqa.filters import DocumentFilter
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.index.corpus_index import Index

PASSAGES = 30_000
OF_DOCUMENT = 3  # passages
WORDS = 90  # of a passage
VOCABULARY = 20_000
QUESTIONS = 300
GROUPS = 100  # a filter keeps one


def main() -> None:
    random = Random(7)
    vocabulary = [f"w{number}" for number in range(VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]  # Zipf's law, about
    index = Index()
    for number in range(PASSAGES // OF_DOCUMENT):
        metadata = json.dumps({"group": number % GROUPS, "number": number})
        for n in range(OF_DOCUMENT):
            text = " ".join(random.choices(vocabulary, weights, k=WORDS))
            info = None if n else DocumentInfo(len(text), metadata)
            index.put(keys.passage("c", str(number), n), "", text, n, info)
    plain, first, again = list[float](), list[float](), list[float]()
    for number in range(QUESTIONS):
        terms = query(" ".join(random.choices(vocabulary, weights, k=7)))
        statistics = index.statistics(terms)
        wanted = DocumentFilter(metadata={"group": number % GROUPS, "number": {"gte": -number}})  # another each time
        text = filters.canonical(wanted)
        for times, filter_ in ((plain, ""), (first, text), (again, text)):
            start = thread_time()
            index.rank(terms, statistics, 10, filter_)
            times.append(thread_time() - start)
    print(f"rank of {len(index):,} passages, p50 of {QUESTIONS} questions, one index, limit 10, processor time")
    for name, times in (("without a filter", plain), ("1 %, a new filter", first), ("1 %, the same filter", again)):
        print(f"{name:22} {median(times) * 1e3:6.3f} ms   {median(times) / median(plain):.2f} x")


if __name__ == "__main__":
    main()
