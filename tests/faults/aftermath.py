"""What is left once a load has ended: every document as its last write left it, found, and the same on one shard."""

import asyncio
from collections import Counter

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.history import Looked
from tests.faults.over_http import spans_of
from tests.faults.subject import Watched
from tests.faults.workload import Record, look

SETTLE_ATTEMPTS = 50  # of a fifth of a second, until the shards have settled what they found after the last harm


async def check(record: Record, engine: Engine, subject: Watched, alone: Engine | None = None) -> list[str]:
    """Faults, as sentences; looks at the documents go into the history. `alone` is an engine of one other shard."""
    await look(record, engine)
    await look(record, engine)  # what was not acknowledged and seen once must stay
    present = {one.document: one.text for one in record.history[-len(documents.NAMES) :] if isinstance(one, Looked)}
    there = {name: text for name, text in present.items() if text is not None}
    faults = await _settled(engine, subject, there)
    faults += [f"{name} is not found by its title" for name in there if not await _found(engine, name)]
    return faults if alone is None else faults + await _unequal(engine, alone, there)


async def _settled(engine: Engine, subject: Watched, there: dict[str, str]) -> list[str]:
    """What stays wrong of sizes and keys."""
    faults: list[str] = []
    for _ in range(SETTLE_ATTEMPTS):
        faults = await _sizes(engine, there) + await asyncio.to_thread(_keys, subject, engine.settings.corpus, there)
        if not faults:
            break
        await asyncio.sleep(0.2)
    return faults


async def _sizes(engine: Engine, there: dict[str, str]) -> list[str]:
    found = await engine.catalogue.corpora()
    sizes = [one.documents for one in found.corpora if one.name == engine.settings.corpus]
    return [] if sizes == [len(there)] and not found.partial else [f"the corpus tells {sizes}, wanted {len(there)}"]


def _keys(subject: Watched, corpus: str, there: dict[str, str]) -> list[str]:
    """Passages without a document, documents with too few or too many, keys on two masters."""
    names, wanted = Counter[str](), dict[str, int]()
    for master in subject.masters():
        with subject.client(master.port) as client:
            for key in client.scan_iter(f"*:{corpus}:*", count=1_000):
                names[key.decode()] += 1
            for name in there:
                count = (
                    client.execute_command("HGET", keys.doc(corpus, name), "passages")
                    if _here(master, name, corpus)
                    else None
                )
                if count is not None:
                    wanted[name] = int(count)
    passages = Counter(keys.parse_passage(key).document for key in names if key.startswith("passage:"))
    faults = [f"{key} is on {count} masters" for key, count in names.items() if count > 1]
    return faults + [
        f"{name} has {passages[name]} passages, wanted {wanted.get(name, 0)}"
        for name in passages.keys() | wanted.keys()
        if passages[name] != wanted.get(name, 0)
    ]


def _here(master: object, name: str, corpus: str) -> bool:
    from redis.crc import key_slot

    return master.owns(int(key_slot(keys.doc(corpus, name).encode())))  # type: ignore[attr-defined,no-any-return]


async def _found(engine: Engine, name: str) -> bool:
    ranked = await engine.ranking.rank(engine.question(name), 50)
    return name in {passage.document for passage in ranked.passages}


async def _unequal(engine: Engine, alone: Engine, there: dict[str, str]) -> list[str]:
    """Questions that one shard, with the same documents, answers otherwise."""
    for name, text in there.items():
        await alone.documents.put(Document(id=name, title=name, text=text))
    faults = []
    for name in documents.NAMES:
        for question in documents.questions(name):
            said = []
            for one in (engine, alone):
                try:
                    answer = await one.ask(question.text, fresh=True, n_best=20)
                    said.append((answer.answer, answer.document, answer.score, spans_of(answer), answer.partial))
                except ShardqaError as fault:
                    said.append((fault.code, None, 0.0, (), False))
            if said[0] != said[1]:
                faults.append(f"{question.text!r}: three shards say {said[0][:3]}, one says {said[1][:3]}")
    return faults
