"""A large corpus on three shards: ingest, memory, new questions, and a worker that is killed.

    DOCUMENTS=150000 bench/scale.py

A document is a run of sentences of SQuAD's training set (others in between) and one sentence made up for it, about a
captain or a mayor with names that nobody else has; the questions ask for those. So most of the text is real, the
vocabulary grows with the corpus as it does in life, and what is right is known. Not part of `make bench`: 150,000
documents take some twenty minutes. With VECTORS=1 memory is told once each passage has its vectors.
"""

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from common import SHARED, memory, percentiles, settings_of, shown, temporary_cluster, worker_pid

from shardqa import machine
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.loader import preparation
from shardqa.loader.ingest import ingest
from shardqa.schema import Answer, Document
from shardqa_toolchain import squad

DOCUMENTS = int(os.environ.get("DOCUMENTS", "20000"))
VECTORS = os.environ.get("VECTORS") == "1"
QUESTIONS = 300
SENTENCES = (4, 30)  # of a document
STRAY = 0.4  # share of sentences from anywhere
CONSONANTS, VOWELS = "b c d f g k l m n p r s t v z br st kr", "a e i o u an er il on us"
SYLLABLES = [a + b for a in CONSONANTS.split(" ") for b in VOWELS.split(" ")]
OFFICES = ("captain", "founder", "mayor", "architect", "editor")
TRAIN = SHARED / "data" / "squad" / "train-v1.1.json.gz"


@dataclass(slots=True)
class Corpus:
    """Documents, made as they are read, and what their made up sentences say."""

    sentences: list[str]
    total: int = DOCUMENTS
    facts: list[tuple[str, str]] = field(default_factory=list)  # question and answer
    _read: int = 0

    def done(self) -> int:
        return self._read

    def __iter__(self) -> Iterator[Document]:
        dice = random.Random(3)
        for number in range(self.total):
            place, person = _name(dice), f"{_name(dice)} {_name(dice)}"
            office = dice.choice(OFFICES)
            self.facts.append((f"Who was the {office} of {place} {number}?", person))
            text = self._text(dice)
            text.insert(dice.randrange(len(text)), f"The {office} of {place} {number} was {person}, born in 1850.")
            self._read += 1
            yield Document(id=f"d{number}", title=place, text=" ".join(text))

    def _text(self, dice: random.Random) -> list[str]:
        first = dice.randrange(len(self.sentences) - SENTENCES[1])
        return [
            dice.choice(self.sentences) if dice.random() < STRAY else self.sentences[first + n]
            for n in range(dice.randint(*SENTENCES))
        ]


def _name(dice: random.Random) -> str:
    return "".join(dice.choices(SYLLABLES, k=dice.randint(2, 4))).capitalize()


def sentences() -> list[str]:
    texts = (paragraph.text for paragraph in squad.read(TRAIN).paragraphs)
    found = [sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text)]
    return [sentence for sentence in found if 30 < len(sentence) < 400]


async def measure(cluster: LocalCluster) -> None:
    async with await Engine.connect(settings_of(cluster)) as engine:
        await measure_with(engine, cluster.addresses)


async def measure_with(engine: Engine, addresses: list[tuple[str, int]]) -> None:
    corpus = Corpus(sentences())
    before = memory(addresses)
    summary = await ingest(engine, corpus, "bench")
    print(
        f"  {summary.documents:,} documents, {summary.passages:,} passages, {summary.characters / 1e6:.0f} M "
        f"characters: {summary.seconds:.0f} s, {summary.mb_per_minute:.0f} MB/min"
    )
    if VECTORS:
        start, encoded = time.perf_counter(), 0
        while encoded < summary.passages:
            await asyncio.sleep(1)
            encoded = (await engine.catalogue.corpora()).corpora[0].encoded or 0
        print(f"  vectors of all: {encoded / (time.perf_counter() - start):.1f} passages a second")
    after = memory(addresses)
    for name, was, now in zip(("redis-server", "workers"), before, after, strict=True):
        each = (sum(now) - sum(was)) * 2**20 / summary.passages
        print(f"  RSS of {name}, MB: {shown(was)} -> {shown(now)}, {each:,.0f} bytes a passage")
    asked = random.Random(5).sample(corpus.facts, QUESTIONS)
    answers = [(await engine.ask(question), answer) for question, answer in asked]
    tell("new questions, k = 5", answers)
    await kill_and_ask(engine, addresses, random.Random(6).sample(corpus.facts, QUESTIONS))


async def kill_and_ask(engine: Engine, addresses: list[tuple[str, int]], facts: list[tuple[str, str]]) -> None:
    port = addresses[0][1]
    killed = worker_pid(port)
    os.kill(killed, signal.SIGKILL)
    start = time.perf_counter()
    waiting = asyncio.create_task(wait_until_whole(engine, port, killed))
    answers = list[tuple[Answer, str]]()
    while not waiting.done() and len(answers) < len(facts):
        question, answer = facts[len(answers)]
        answers.append((await engine.ask(question), answer))
        await asyncio.sleep(0.1)
    await waiting
    print(f"  a worker killed: whole again after {time.perf_counter() - start:.1f} s")
    tell(f"meanwhile, {sum(answer.partial for answer, _ in answers)} of {len(answers)} partial", answers)


async def wait_until_whole(engine: Engine, port: int, killed: int) -> None:
    while True:
        if worker_pid(port) != killed and all(shard.tag is not None for shard in await engine.cluster.shards()):
            break
        await asyncio.sleep(0.1)
    await preparation.wait_for_indexes(engine, lambda passages: None)


def tell(what: str, answers: list[tuple[Answer, str]]) -> None:
    right = np.mean([answer.n_best[:1] != [] and answer.n_best[0].answer == wanted for answer, wanted in answers])
    times = [answer.timing.total / 1e3 for answer, _ in answers]
    ranks = [(answer.timing.terms + answer.timing.rank) / 1e3 for answer, _ in answers]
    print(f"  {what}: {percentiles(times)}, of it ranking {percentiles(ranks)}; {100 * right:.0f} % right")


def main() -> None:
    if not TRAIN.is_file():
        print(f"skipped: {TRAIN} is not here")
        return
    with temporary_cluster(shards=3, vectors=VECTORS) as cluster:
        print(f"a large corpus on 3 shards, {machine.label()}")
        asyncio.run(measure(cluster))


if __name__ == "__main__":
    main()
