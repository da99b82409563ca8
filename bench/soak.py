"""A cluster under load while workers are killed, nodes hang and slots move; then what is lost is counted.

    bench/soak.py [MINUTES]

Questions of seeds/ are asked by several askers, some of them changed so that no cache knows them; one writer puts and
deletes the documents. Every answer is checked against its document's text. A fault that passes (ClusterUnavailable,
AnswerTimeout) is counted, any other one is printed. In the end every document must be as its last write left it, and
each must be found by its title. Exits with 1 when something is wrong or lost.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from random import Random
from time import monotonic

from common import ROOT, settings_of, temporary_cluster, worker_pid

from shardqa import machine, topology
from shardqa.cluster import node
from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.errors import AnswerTimeout, ClusterUnavailable, ShardqaError, UnknownCorpus
from shardqa.schema import Document

SHARDS = 3
ASKERS = 4
MINUTES = 5.0
PASSING = (AnswerTimeout, ClusterUnavailable, UnknownCorpus)  # the last: the writer may have deleted every document
SETTLE_SECONDS = 10.0  # after the last harm: a worker is back, slots have settled
SLOTS = 200  # moved at a time


class Soak:
    def __init__(self, cluster: LocalCluster, engine: Engine, until: float) -> None:
        self.cluster, self.engine, self.until = cluster, engine, until
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.texts = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "seeds" / "documents").iterdir())}
        lines = (ROOT / "seeds" / "questions.jsonl").read_text("utf-8").splitlines()
        self.questions = [str(json.loads(line)["question"]) for line in lines]
        self.present: dict[str, bool | None] = dict.fromkeys(self.texts, False)  # None: the last write failed

    @property
    def goes_on(self) -> bool:
        return monotonic() < self.until

    # ---- load

    async def ask(self, chance: Random) -> None:
        while self.goes_on:
            question = chance.choice(self.questions) + (f" {chance.random()}" if chance.random() < 0.5 else "")
            try:
                answer = await self.engine.ask(question, fresh=chance.random() < 0.3)
            except PASSING as fault:
                self.counts[f"asked: {fault.code}"] += 1
                await asyncio.sleep(0.05)
                continue
            except ShardqaError as fault:
                self.wrong.append(f"{question!r}: {fault.code}: {fault}")
                continue
            self.counts["asked: partial" if answer.partial else "asked: answered"] += 1
            for found in answer.n_best:
                if self.texts[found.document][found.start : found.end] != found.answer:
                    self.wrong.append(f"{question!r}: {found.answer!r} is not at {found.start} of {found.document}")

    async def write(self, chance: Random) -> None:
        while self.goes_on:
            await self.change(chance.choice(list(self.texts)), chance.random() < 0.7)
            await asyncio.sleep(chance.random() * 0.3)

    async def change(self, document: str, present: bool) -> None:
        try:
            if present:
                await self.engine.put(Document(id=document, title=document, text=self.texts[document]))
            else:
                await self.engine.delete(self.engine.settings.corpus, document)
        except PASSING as fault:
            self.counts[f"written: {fault.code}"] += 1
            self.present[document] = None
        else:
            self.counts["written: done"] += 1
            self.present[document] = present

    # ---- harm

    async def harm(self, chance: Random) -> None:
        harms = {"workers killed": self.kill_worker, "nodes hung": self.hang, "slots moved": self.move_slots}
        while self.goes_on:
            await asyncio.sleep(3 + 7 * chance.random())
            name = chance.choice(list(harms))
            self.counts[name] += await harms[name](chance)

    async def kill_worker(self, chance: Random) -> int:
        pid = worker_pid(chance.choice(self.cluster.addresses)[1])
        if pid:
            os.kill(pid, signal.SIGKILL)
        return int(pid > 0)

    async def hang(self, chance: Random) -> int:
        process = chance.choice(self.cluster.state.nodes).process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        await asyncio.sleep(2 + 4 * chance.random())
        os.kill(process.pid, signal.SIGCONT)
        return 1

    async def move_slots(self, chance: Random) -> int:
        with node.connected(self.cluster.state.port) as client:
            giver, taker = chance.sample(topology.read(client), 2)
        words = ["--cluster", "reshard", self.cluster.seed(), "--cluster-from", giver.id, "--cluster-to", taker.id]
        words += ["--cluster-slots", str(SLOTS), "--cluster-yes"]
        done = await asyncio.to_thread(subprocess.run, ["redis-cli", *words], capture_output=True, check=False)
        return SLOTS if done.returncode == 0 else 0

    # ---- what is left

    async def check(self) -> None:
        for document, present in self.present.items():
            if present is None:
                await self.change(document, True)
        corpus = self.engine.settings.corpus
        for document, present in self.present.items():
            found = await self.engine.get(corpus, document)
            if present is None or (found is not None) != present or (found and found.text != self.texts[document]):
                self.wrong.append(f"{document}: there is {found and found.text[:40]!r}, its last write was {present}")
        wanted = sum(map(bool, self.present.values()))
        sizes = [one.documents for one in (await self.engine.corpora()).corpora if one.name == corpus]
        if sizes != [wanted]:
            self.wrong.append(f"the corpus has {sizes} documents and not {wanted}")
        for document in (name for name, present in self.present.items() if present):
            ranked = await self.engine.rank(document.replace("-", " "), corpus, 50)
            if document not in {passage.document for passage in ranked.passages}:
                self.wrong.append(f"{document} is not found by its title")


async def soak(cluster: LocalCluster, minutes: float) -> Soak:
    engine = await Engine.connect(settings_of(cluster, "soak").model_copy(update={"timeout": 10.0}))
    run = Soak(cluster, engine, monotonic() + minutes * 60)
    try:
        for document in run.texts:
            await run.change(document, True)
        askers = [run.ask(Random(number)) for number in range(ASKERS)]
        await asyncio.gather(*askers, run.write(Random(100)), run.harm(Random(200)))
        await asyncio.sleep(SETTLE_SECONDS)
        await run.check()
    finally:
        await engine.close()
    return run


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    print(f"{minutes:g} minutes under load, {SHARDS} shards, {ASKERS} askers, {machine.label()}", flush=True)
    with temporary_cluster(shards=SHARDS) as cluster:
        run = asyncio.run(soak(cluster, minutes))
        left = sum(readers(port) for _, port in cluster.addresses)
    for name, count in sorted(run.counts.items()):
        print(f"  {name:28} {count}")
    print(f"  {'readers left':28} {left} on {SHARDS} shards")
    print(f"  {'wrong or lost':28} {len(run.wrong)}")
    print("\n".join(f"    {line}" for line in run.wrong[:20]))
    sys.exit(1 if run.wrong else 0)


def readers(port: int) -> int:
    with node.connected(port) as client:
        return len(client.keys("model:*"))


if __name__ == "__main__":
    main()
