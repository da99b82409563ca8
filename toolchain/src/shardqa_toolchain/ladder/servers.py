"""The last table: three models in torch and transformers in one web process, against the shipped reader in ours.

The three tell a span, whether there is an answer, and which tokens are evidence: what one pass of the shipped reader
tells. Each process is held to one core and asked over HTTP, one question after another.
"""

import json
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import onnx

from shardqa.errors import SetupError
from shardqa.models.session import MODEL_FILE
from shardqa_toolchain import squad
from shardqa_toolchain.ladder.steps import Networks, cores
from shardqa_toolchain.processes import Process

WEIGHTS_APART, MAPPED_BYTES = "weights.bin", 1 << 16  # the file, and bytes of a weight that is worth a mapping
START_SECONDS = 120.0  # a server that has not answered by then does not come up
ASKED = 8  # questions of a round
NAIVE, OWN = "three models, torch and transformers", "one int8 network, onnxruntime"


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """A server's costs, medians over the rounds."""

    name: str
    memory: float  # resident after its last answer, MB
    unshared: float  # of which no file of the disk is behind, MB
    start: float  # seconds from the process's start to its first answer
    p50: float  # milliseconds of a question


def compare(
    made: Networks, work: Path, questions: Path, rounds: int, quick: bool
) -> tuple[tuple[ServerFigures, ...], Mapping[str, float]]:
    """Measures both in turns, and ours by its parts; raises SetupError where one dies."""
    own = ["shardqa_toolchain.packaging.server", str(with_weights_apart(made.reader, work / "served")), "0"]
    copies = [str(shutil.copytree(made.base, work / f"naive-{n}")) for n in range(3)]  # what three tasks have on disk
    words = {NAIVE: ["shardqa_toolchain.ladder.naive_server", *copies], OWN: own}
    events = _events(questions, 1 if quick else ASKED)
    runs: dict[str, list[ServerFigures]] = {NAIVE: [], OWN: []}
    for number in range(rounds):
        for name in list(words)[:: -1 if number % 2 else 1]:
            runs[name].append(_measured(name, words[name], events))
    with Process.of_module(["shardqa_toolchain.ladder.account", own[1]], core=cores()[0]) as process:
        account: dict[str, float] = process.message()
    return tuple(_middle(found) for found in runs.values()), account


def with_weights_apart(reader: Path, out: Path) -> Path:
    """Copies a reader to the new folder ``out``, its large weights to a file of their own there; returns ``out``."""
    shutil.copytree(reader, out)
    (out / MODEL_FILE).unlink()
    onnx.save_model(
        onnx.load(reader / MODEL_FILE),
        out / MODEL_FILE,
        save_as_external_data=True,
        location=WEIGHTS_APART,
        size_threshold=MAPPED_BYTES,
    )
    return out


def _events(questions: Path, count: int) -> list[bytes]:
    found = squad.read(questions)
    texts = {paragraph.id: paragraph.text for paragraph in found.paragraphs}
    asked = found.questions[:count]
    return [json.dumps({"question": one.text, "passage": texts[one.document or ""]}).encode() for one in asked]


def _measured(name: str, words: list[str], events: list[bytes]) -> ServerFigures:
    began = time.monotonic()
    with Process.of_module(words, core=cores()[0]) as process:
        address = f"http://127.0.0.1:{process.message()['port']}/"
        _ask(process, address, events[0], began + START_SECONDS)
        start = time.monotonic() - began
        times = []
        for event in events:
            since = time.perf_counter()
            _ask(process, address, event, time.monotonic() + START_SECONDS)
            times.append(time.perf_counter() - since)
        memory = _memory(process.pid)
    return ServerFigures(name, memory["Rss"] / 1e3, memory["Anonymous"] / 1e3, start, 1e3 * median(times))


def _ask(process: Process, address: str, event: bytes, until: float) -> dict[str, Any]:
    request = urllib.request.Request(address, event, {"content-type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=START_SECONDS) as reply:
                answer: dict[str, Any] = json.loads(reply.read())
                return answer
        except urllib.error.URLError:  # not up yet
            if time.monotonic() > until or process.ended:
                raise SetupError(
                    f"{address} has not answered for {START_SECONDS:.0f} s; try its command by hand"
                ) from None
            time.sleep(0.01)


def _memory(pid: int) -> dict[str, int]:
    """A process's memory by Linux' names, KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return {
        name: int(words[0]) for line in lines for name, *words in [line.replace(":", "").split()] if len(words) == 2
    }


def _middle(runs: list[ServerFigures]) -> ServerFigures:
    values = {field: median(getattr(one, field) for one in runs) for field in ("memory", "unshared", "start", "p50")}
    return ServerFigures(runs[0].name, **values)
