"""The corpora of the shards in Prometheus' text: asked when /metrics is scraped, and not kept."""

from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from shardqa.api.metrics import exposition
from shardqa.schema import CorpusInfo

MAX_CORPORA = 200  # corpora that have series of their own, those with most passages: Prometheus keeps each label
SIZES = {
    "documents": "Documents of a corpus, on the shards that answered.",
    "passages": "Passages of a corpus, on the shards that answered.",
    "bytes": "Bytes of a corpus' texts, on the shards that answered.",
    "encoded": "Passages of a corpus that have a vector; only where an encoder is in use.",
}


def text(corpora: Sequence[CorpusInfo]) -> bytes:
    return exposition(families(corpora))


def families(corpora: Sequence[CorpusInfo]) -> Iterator[Metric]:
    largest = sorted(corpora, key=lambda one: (-one.passages, one.name))[:MAX_CORPORA]
    for field, says in SIZES.items():
        family = GaugeMetricFamily(f"shardqa_corpus_{field}", says, labels=["corpus"])
        for corpus in largest:
            if (size := getattr(corpus, field)) is not None:
                family.add_metric([corpus.name], size)
        yield family
