"""A bundle tried: unpacked, answered from alone on one processor, and what that costs."""

import os
import statistics
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa.errors import BadModel
from shardqa.models.reader import MAX_ROW_TOKENS
from shardqa.models.tokenizer import TOKENIZER_FILE, Tokenizer
from shardqa_toolchain.conversion.probes import probe
from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.rations import rationed
from shardqa_toolchain.packaging.serving import Server
from shardqa_toolchain.picture import Panel, bars
from shardqa_toolchain.processes import Process

ROW_TOKENS = 128  # of the question whose latency is measured, its passage and special tokens included
STARTS = 5  # fresh processes timed; the median counts
CALLS = 60  # timed answers of a warm process, after WARMING more
WARMING = 10
VCPU_MB = 1769  # memory at which Lambda gives a function one whole processor; less gives less in proportion
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)  # of a processor, in the curve
EQUAL_QUESTIONS = 16  # asked of the bundle and of the reader that it was made from
QUESTION = "Who planned the reed beds?"
PASSAGE = "The biologist Marta Ilves, who planned the reed beds, counted 4,800 adult fish in her last survey."
Json = dict[str, Any]  # a JSON object


@dataclass(frozen=True, slots=True)
class Trial:
    """Costs of a bundle on one processor of this machine; seconds and bytes."""

    first_answer: float  # from the start of the process, the files in the page cache; median of STARTS
    peak_memory: int  # the most that the process held, after all calls
    warm_p50: float  # of a row of ROW_TOKENS tokens, from event to reply
    warm_p99: float
    answer: Json  # what it said to QUESTION


@dataclass(frozen=True, slots=True)
class RamPoint:
    """Latency with a share of a processor, and the memory that Lambda gives it for; seconds."""

    share: float
    ram_mb: int
    p50: float
    p99: float
    ration: str  # how the processor was rationed here


@contextmanager
def unpacked(bundle: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="shardqa-bundle-") as folder:
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(folder)
        yield Path(folder)


def started(root: Path, python: str, processors: int = 1) -> Process:
    """A fresh process that answers from an unpacked bundle, held to so many processors."""
    command = [python, "-I", "-S", "-B", str(Path(__file__).with_name("driver.py")), str(root)]
    return Process(command, sorted(os.sched_getaffinity(0))[-processors:], cwd=root)


def measure(root: Path, python: str) -> Trial:
    """Start, ask and time an unpacked bundle with an interpreter of its version; raises BadModel, SetupError."""
    first = []
    for _ in range(STARTS):
        began = time.perf_counter()
        with started(root, python) as process:
            answer = process.ask({"question": QUESTION, "passage": PASSAGE})["reply"]
            first.append(time.perf_counter() - began)
    with started(root, python) as process:
        seconds, peak = _calls(process, row_event(root / "model"))
    return Trial(statistics.median(first), peak, _percentile(seconds, 50), _percentile(seconds, 99), answer)


def ram_curve(root: Path, python: str, shares: Sequence[float] = SHARES) -> list[RamPoint]:
    """Latency of a row of ROW_TOKENS tokens with each share of a processor; raises BadModel, SetupError."""
    event = row_event(root / "model")
    points = []
    for share in shares:
        with started(root, python, max(1, round(share))) as process:
            process.ask(event)
            with rationed(process.pid, share) as ration:
                seconds, _ = _calls(process, event)
        p50, p99 = _percentile(seconds, 50), _percentile(seconds, 99)
        points.append(RamPoint(share, round(share * VCPU_MB), p50, p99, ration))
    return points


def drawn(points: Sequence[RamPoint]) -> str:
    """The curve as SVG."""
    rows = [f"{point.share:g} vCPU, {point.ram_mb:,} MB" for point in points]
    panels = [
        Panel(name, values, [f"{value:.0f}" for value in values])
        for name, values in (
            ("p50, ms", [1e3 * point.p50 for point in points]),
            ("p99, ms", [1e3 * point.p99 for point in points]),
        )
    ]
    return bars(f"{ROW_TOKENS} tokens, warm, by the share of a processor", rows, panels)


def check_equal(root: Path, python: str, reader: Path) -> int:
    """Asks the bundle and the reader that it was made from the same questions, and returns how many.

    Raises BadModel with the first that they answer otherwise.
    """
    original = Server(Answerer(reader))
    found = probe(reader / TOKENIZER_FILE, 0, MAX_ROW_TOKENS, None, EQUAL_QUESTIONS).readings
    events = [{"question": one.question.text, "passage": one.text} for one in found]
    with started(root, python) as process:
        for event in events:
            reply, wanted = process.ask(event)["reply"], original.event(event)
            if reply != wanted:
                raise BadModel(f"{event['question']!r}: the bundle says {reply}, the reader {wanted}; pack it anew")
    return len(events)


def row_event(model: Path) -> Json:
    """A question that makes a row of ROW_TOKENS tokens; raises BadModel when the tokenizer lacks the word for it."""
    tokenizer = Tokenizer.load(model)
    words = ROW_TOKENS - 3 - len(tokenizer.question(QUESTION))
    passage = "a " * words
    if len(tokenizer.passage(passage)) != words:
        raise BadModel(f"{model / 'tokenizer.json'} does not know the word 'a'; measure with an English one")
    return {"question": QUESTION, "passage": passage}


def _calls(process: Process, event: Json) -> tuple[list[float], int]:
    """Seconds of each timed call, and the most memory held at the end, bytes."""
    for _ in range(WARMING):
        process.ask(event)
    replies = [process.ask(event) for _ in range(CALLS)]
    return [float(reply["seconds"]) for reply in replies], int(replies[-1]["peak_kb"]) * 1024


def _percentile(seconds: Sequence[float], percent: int) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]
