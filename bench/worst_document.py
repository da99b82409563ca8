"""Questions beside the worst document that a fuzzer finds, and what it takes in Redis.

    python bench/worst_document.py [--documents 30] [--repeats 4] [--seed 1]

Three shards with reader and encoder, the API before them, an asker in a process of its own. Behind those that were the
worst once, the fuzzer puts together documents of hostile texts, titles, places and metadata within the bounds; each is
put and deleted while the asker asks of another corpus. Some are sent as a file, or as many tiny documents in a request.
The worst one by its slowest questions is put again and again, in turn with quiet times as long. Nothing is tried twice.
Ratios of one run: median and p99 beside it against quiet, <= 3 wanted of p99; questions that failed or had another
answer, 0; memory of Redis against the bytes of each document (or 100 KB), <= 10.
"""

import asyncio
import json
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated

import httpx2
import numpy as np
import typer
from common import ROOT, percentiles, settings_of, temporary_cluster, wait_until_encoded

from shardqa import machine, metadata, places
from shardqa.checks import BOUNDS
from shardqa.client import Client, Retries
from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import AnswerTimeout, ShardqaError, UnknownCorpus
from shardqa.files.folders import SourceFiles
from shardqa.gears_functions.shard.document_parts import GROWTH, LEAST_BYTES
from shardqa.http_schema import FileOutcome
from shardqa.loader.ingest import ingest
from shardqa.places import Mark, Place
from shardqa.schema import Document, Ingested
from shardqa_toolchain import squad

sys.path.append(str(ROOT))  # a bench is run as a file
from tests.api.conftest import running_api

QUIET_SECONDS = 15.0
SETTLED_SECONDS = 2.5  # until what a connection took is given back
KINDS: dict[str, Callable[[random.Random], str]] = {
    "words": lambda dice: "".join(dice.choices("aeiou", k=3)) + str(dice.randrange(10**6)) + dice.choice([" ", ". "]),
    "letters": lambda dice: dice.choice("abcdefgh") + " ",
    "a long word": lambda dice: dice.choice("abcdefgh"),
    "dots": lambda dice: "." * dice.randrange(1, 9),
    "sentences": lambda dice: f"Miller {dice.randrange(10**4)} of village {dice.randrange(997)} ground rye. ",
    "lines": lambda dice: dice.choice("ab12") + "\n",
    "blanks": lambda dice: " " * 40 + dice.choice("\n\t \u2003x"),
    "ligatures of phrases": lambda dice: "\ufdfa" * dice.randrange(1, 9) + " ",
    "signs of words": lambda dice: chr(0x3300 + dice.randrange(0x58)),
    "leftwards": lambda dice: dice.choice("\u202e\u202c\u05d0\u0627\u0644 "),
    "without width": lambda dice: dice.choice("ab \u200b\u200d\ufeff\u2060"),
    "ideographs": lambda dice: chr(0x4E00 + dice.randrange(20_000)),
    "hangul": lambda dice: chr(0xAC00 + dice.randrange(11_000)),
    "accents": lambda dice: "e" + "\u0301" * dice.randrange(1, 30),
    "marks": lambda dice: dice.choice("c++ .net 10⁵ #-'’[]"),
    "numbers": lambda dice: f"{dice.randrange(10**9):,}",
    "leaders": lambda dice: f"Part {dice.randrange(99)} . . . . . . {dice.randrange(999)}\n",
    "notices": lambda dice: dice.choice(["permission is granted ", "in no event shall the ", "provided as is\n"]),
    "emoji": lambda dice: chr(0x1F600 + dice.randrange(60)),
}
KNOWN = {  # once among the worst
    "a table of contents": "....... 12\n", "one word": "rye ", "nothing but dots": ".", "phrases in a sign": "\ufdfa",
}  # fmt: skip
FILES = {  # a hostile part of each kind of file, by the file's suffix
    ".md": "![a](", ".html": "<div><p>a", ".csv": "rye,12\n", ".txt": "\ufdfa ",
    ".json": "[", ".eml": "From: a\n\n>> b\n",
}  # fmt: skip
LARGE = 4_950_000  # bytes, within the bound
FILE_BYTES = 500_000
TINY = 100_000  # documents of one request
ONCE = Retries(attempts=1)


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    document: Document
    size: int  # bytes of all that it says
    suffix: str = ""  # of the file that it is sent as
    copies: int = 1  # documents of one request


def cases(dice: random.Random) -> Iterator[Case]:
    for name, part in KNOWN.items():
        text = part * (LARGE // len(part.encode()))
        yield Case(name, Document(id=f"case-{name}", corpus="worst", text=text), len(text.encode()))
    yield Case(f"{TINY:,} documents", Document(id="tiny", corpus="worst-tiny", text="rye"), 40 * TINY, copies=TINY)
    for suffix, part in FILES.items():
        text = part * (FILE_BYTES // len(part.encode()))
        yield Case(
            f"a file {suffix}", Document(id=f"case{suffix}", corpus="worst-files", text=text), FILE_BYTES, suffix
        )
    for n in range(sys.maxsize):
        kinds, size = dice.sample(sorted(KINDS), dice.choice([1, 1, 2])), dice.choice([100_000, 1_000_000, 4_900_000])
        text = _text(dice, kinds, size)
        title = dice.choice(["", "Title", _text(dice, kinds, BOUNDS["title"])])
        marks, marked = _marks(dice, len(text))
        extra = dice.choice([{}, {}, {f"m{i}": "v" * 20 for i in range(metadata.MAX_BYTES // 40)}])
        document = Document(id=f"case-{n}", corpus="worst", title=title, text=text, metadata=extra, places=marks)
        stated = len(text.encode()) + len(title.encode()) + len(places.encode(marks)) + len(json.dumps(extra))
        yield Case(f"{' and '.join(kinds)}, title {len(title)}, {marked}, metadata {len(extra)}", document, stated)


def _text(dice: random.Random, kinds: list[str], size: int) -> str:
    """At most `size` bytes; a part of it is made anew, the rest repeats it."""
    part = "".join(KINDS[dice.choice(kinds)](dice) for _ in range(20_000))
    once = part.encode()[: min(size, 200_000)].decode(errors="ignore")
    return (once * (size // len(once.encode()) + 1)).encode()[:size].decode(errors="ignore")


def _marks(dice: random.Random, length: int) -> tuple[list[Mark], str]:
    step = dice.choice([0, 0, 20, 200, 2_000])
    words = dice.choice([3, 300, 3_800])
    if not step:
        return [], "no places"
    count = min(length // step, places.MAX_PLACES // (words + 60))
    kind = dice.choice(["headings", "cells", "asides"])
    made = [(n * step, _place(kind, n, words)) for n in range(count)]
    return made, f"{count} {kind} of {words}"


def _place(kind: str, n: int, words: int) -> Place:
    if kind == "headings":
        return Place(headings=[f"{n} ".ljust(words, "x")])
    if kind == "cells":
        return Place(row=n, cells=[(f"c{i}", "v" * (words // 8)) for i in range(6)])
    return Place(page=n, aside="contents" if n % 2 else None)


# ---- the asker


@dataclass(frozen=True, slots=True)
class Asked:
    began: float
    seconds: float
    fault: str  # empty of a right answer


def ask_on(url: str, questions: list[str], pipe: Connection) -> None:
    """Asks until it is told to end, then tells all replies. The first round's answers are the right ones."""
    replies, right = list[Asked](), dict[str, str | None]()
    with Client(url, timeout=60, retries=ONCE) as client:
        for question in cycle(questions):
            if pipe.poll():
                break
            began = time.monotonic()
            try:
                answer = client.ask(question, corpus="quiet", fresh=True)
                other = "" if right.setdefault(question, answer.answer) == answer.answer else "another answer"
                fault = "partial" if answer.partial else other
            except ShardqaError as error:
                fault = f"{error.code}: {str(error)[:100]}"
            replies.append(Asked(began, time.monotonic() - began, fault))
            time.sleep(0.005)
    pipe.send(replies)


class Asking:
    def __init__(self, url: str, questions: list[str]) -> None:
        self._pipe, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=ask_on, args=(url, questions, there), daemon=True)
        self._process.start()

    def end(self) -> list[Asked]:
        self._pipe.send("end")
        replies: list[Asked] = self._pipe.recv()
        self._process.join()
        return replies


# ---- documents beside it


@dataclass(slots=True)
class Beside:
    """A case, and when it was on its way in or out."""

    case: Case
    windows: list[tuple[float, float]]
    memory: float = 0.0  # times the document's bytes
    outcome: str = ""


class Putting:
    def __init__(self, cluster: LocalCluster, engine: Engine, client: Client) -> None:
        self._cluster = cluster
        self._engine = engine
        self._client = client

    async def weigh(self, beside: Beside) -> None:
        """Puts and deletes it once, and says what it takes in Redis."""
        before = self._memory()
        await self.put(beside)
        await asyncio.sleep(SETTLED_SECONDS)
        beside.memory = (self._memory() - before) / max(beside.case.size, LEAST_BYTES * beside.case.copies)
        await self.delete(beside)

    async def put(self, beside: Beside) -> None:
        document, began = beside.case.document, time.monotonic()
        try:
            if beside.case.copies > 1:
                beside.outcome = await asyncio.to_thread(self._add_lines, beside.case)
            elif beside.case.suffix:
                outcome = await asyncio.to_thread(self._add_file, document)
                beside.outcome = f"{len(outcome.documents)} documents, {len(outcome.skipped)} left out"
            elif document.places:
                beside.outcome = f"{(await self._engine.documents.put(document)).passages} passages"
            else:  # what HTTP can say
                beside.outcome = f"{(await asyncio.to_thread(self._add, document)).passages} passages"
        except ShardqaError as error:
            beside.outcome = f"{error.code}: {str(error)[:90]}"
        beside.windows.append((began, time.monotonic()))

    async def delete(self, beside: Beside) -> None:
        began = time.monotonic()
        corpus = str(beside.case.document.corpus)
        is_there = not (is_several := beside.case.copies > 1 or bool(beside.case.suffix))
        while is_there:
            with suppress(AnswerTimeout):  # on a busy machine it may be on its way in yet
                is_there = await self._engine.documents.delete(corpus, beside.case.document.id)
        if is_several:
            with suppress(UnknownCorpus):
                await self._engine.catalogue.drop(corpus)
            async for _ in self._engine.catalogue.dropping(corpus):
                pass
        beside.windows.append((began, time.monotonic()))

    def _add(self, document: Document) -> Ingested:
        given = (document.text, document.id, document.corpus)
        return self._client.add(*given, title=document.title, metadata=document.metadata)

    def _add_file(self, document: Document) -> FileOutcome:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / document.id
            path.write_text(document.text)
            return self._client.add_file(path, document.corpus)

    def _add_lines(self, case: Case) -> str:
        lines = (json.dumps({"id": f"tiny {n}", "text": f"rye {n}"}) for n in range(case.copies))
        with httpx2.Client(timeout=600) as http:
            reply = http.post(
                f"{self._client.url}/v1/documents?corpus={case.document.corpus}",
                content="\n".join(lines).encode(),
                headers={"Content-Type": "application/x-ndjson"},
            )
        return f"{sum(json.loads(line)['status'] < 300 for line in reply.text.splitlines()):,} taken"

    def _memory(self) -> int:
        """Bytes that all shards use, without what connections take."""
        total = 0
        for _, port in self._cluster.addresses:
            with node.connected(port) as redis:
                told = redis.info("memory")
                total += told["used_memory"] - told["mem_clients_normal"]
        return total


def within(replies: list[Asked], windows: list[tuple[float, float]]) -> list[Asked]:
    """The questions that overlap with some of these times."""
    return [
        one for one in replies if any(one.began < end and one.began + one.seconds > start for start, end in windows)
    ]


def at(percent: int, replies: list[Asked]) -> float:
    """Seconds of a percentile; not a number where nobody asked."""
    return float(np.percentile([one.seconds for one in replies], percent)) if replies else math.nan


async def explore(putting: Putting, url: str, questions: list[str], seed: int, count: int) -> list[Beside]:
    """Puts each case once; prints and returns them, the worst first."""
    order = [Beside(case, []) for case, _ in zip(cases(random.Random(seed)), range(count), strict=False)]
    asking = Asking(url, questions)
    await asyncio.sleep(QUIET_SECONDS)
    quiet = [(time.monotonic() - QUIET_SECONDS / 2, time.monotonic())]
    for beside in order:
        await putting.weigh(beside)
    replies = asking.end()
    calm = within(replies, quiet)
    order.sort(key=lambda beside: -at(99, within(replies, beside.windows)))
    for beside in order:
        during = within(replies, beside.windows)
        print(f"  {_ratios(during, calm)} {beside.memory:5.1f}x memory {_faults(during)}  {_told(beside)}")
    return order


async def judge(putting: Putting, url: str, questions: list[str], beside: Beside, repeats: int) -> None:
    """Puts the worst one again, in turn with quiet times."""
    beside.windows.clear()
    asking, quiet = Asking(url, questions), list[tuple[float, float]]()
    await asyncio.sleep(QUIET_SECONDS)
    for _ in range(repeats):
        quiet.append((time.monotonic(), time.monotonic() + QUIET_SECONDS))
        await asyncio.sleep(QUIET_SECONDS)
        while time.monotonic() < quiet[-1][1] + QUIET_SECONDS:
            await putting.put(beside)
            await putting.delete(beside)
    replies = asking.end()
    calm, during = within(replies, quiet), within(replies, beside.windows)
    print(f"the worst: {_told(beside)}")
    for name, some in (("quiet", calm), ("beside", during)):
        times = percentiles([one.seconds for one in some])
        print(f"  {name:7} {times}  ({len(some):,} questions, {_faults(some)})")
    print(f"  {_ratios(during, calm)} (p99 wanted <= 3), memory {beside.memory:.1f}x (wanted <= {GROWTH})")


def _ratios(during: list[Asked], calm: list[Asked]) -> str:
    return f"p50 {at(50, during) / at(50, calm):4.1f}x p99 {at(99, during) / at(99, calm):4.1f}x"


def _faults(replies: list[Asked]) -> str:
    faults = Counter(one.fault for one in replies if one.fault)
    return f"{faults.total()} faults" + "".join(f" ({times} times {fault})" for fault, times in faults.most_common())


def _told(beside: Beside) -> str:
    seconds = sum(end - start for start, end in beside.windows)
    return f"{beside.case.size:,} bytes of {beside.case.name}: {beside.outcome}, {seconds:.1f} s"


def main(
    documents: Annotated[int, typer.Option(help="Documents that the fuzzer makes.", min=1)] = 30,
    repeats: Annotated[int, typer.Option(help="Times that the worst one is put again.", min=1)] = 4,
    seed: Annotated[int, typer.Option(help="Of the fuzzer.")] = 1,
) -> None:
    """Print each case and the figures of the worst."""
    questions = [one.text for one in squad.read(ROOT / "seeds" / "questions.jsonl").questions]
    print(f"questions beside hostile documents, {machine.label()}", flush=True)
    with temporary_cluster(3, vectors=True) as cluster, tempfile.TemporaryDirectory() as folder:
        settings = settings_of(cluster, "quiet")
        served = {"redis": settings.redis, "corpus": settings.corpus, "timeout": settings.timeout}
        with running_api(Path(folder), **served) as api, Client(api.url, timeout=120, retries=ONCE) as client:

            async def run() -> None:
                async with await Engine.connect(settings) as engine:
                    await ingest(engine, SourceFiles([ROOT / "seeds" / "documents"]), "quiet")
                    await asyncio.to_thread(wait_until_encoded, cluster, "quiet")  # some answers change with vectors
                    putting = Putting(cluster, engine, client)
                    worst, *_ = await explore(putting, api.url, questions, seed, documents)
                    await judge(putting, api.url, questions, worst, repeats)

            asyncio.run(run())


if __name__ == "__main__":
    typer.run(main)
