"""Prometheus metrics of one process, in a registry of their own: several apps may live in one interpreter."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from shardqa.answer import Answer

# Seconds. A repeat from the process' own memory takes well under a millisecond, a cold question tens to hundreds.
BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PHASES = ("cache", "terms", "rank", "read", "total")  # fields of answer.Timing


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "shardqa_http_requests",
            "Requests answered, by method, route template and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.in_flight = Gauge("shardqa_http_in_flight", "Requests being served.", registry=self.registry)
        self.rejected = Counter(
            "shardqa_http_rejected",
            "Requests refused at the door, by the problem's code.",
            ("code",),
            registry=self.registry,
        )
        self.asked = Histogram(
            "shardqa_ask_seconds",
            "Time of a question by phase and by the cache that answered it (none, process, redis).",
            ("phase", "cache"),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.answers = Counter(
            "shardqa_answers",
            "Questions by outcome: answered, no_answer; partial when some shard did not answer.",
            ("outcome", "partial"),
            registry=self.registry,
        )
        self.documents = Counter(
            "shardqa_documents",
            "Documents taken over HTTP by outcome: changed, unchanged, refused, deleted.",
            ("outcome",),
            registry=self.registry,
        )
        self.connected = Gauge("shardqa_cluster_connected", "1 once the cluster was reached.", registry=self.registry)

    def observe(self, answer: Answer) -> None:
        """Counts an answer and its phases; a phase that did not run is not observed."""
        cache = answer.cache or "none"
        for phase in PHASES:
            milliseconds = getattr(answer.timing, phase)
            if milliseconds > 0:
                self.asked.labels(phase, cache).observe(milliseconds / 1000)
        outcome = "no_answer" if answer.no_answer else "answered"
        self.answers.labels(outcome, str(answer.partial).lower()).inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format 0.0.4."""
        return generate_latest(self.registry)
