"""The state once a load has ended: every document as its last write left it, found, and the same on one shard."""

import asyncio
from collections import Counter

from redis.crc import key_slot

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ShardqaError
from shardqa.schema import Document
from tests.faults import checker, documents
from tests.faults.history import Look
from tests.faults.over_http import spans_of
from tests.faults.subject import Watched
from tests.faults.workload import Record, look

SETTLE_ATTEMPTS = 50  # of a fifth of a second, until the shards have settled what they found after the last harm


async def check(record: Record, engine: Engine, subject: Watched, alone: Engine | None = None) -> list[str]:
    """Faults, as sentences; looks at the documents go into the history. `alone` is an engine of one other shard."""
    await look(record, engine)
    await look(record, engine)  # what was not acknowledged and seen once must stay
    looks = [event for event in record.history[-len(documents.NAMES) :] if isinstance(event, Look)]
    texts = {look.document: look.text for look in looks if look.text is not None}
    faults = await _settled(engine, subject, texts)
    faults += [f"{name} is not found by its title" for name in texts if not await _is_ranked(engine, name)]
    return faults if alone is None else faults + await _unequal(engine, alone, texts)


async def assert_right(record: Record, settings: Settings, subject: Watched, lag: float) -> None:
    """After a load nothing acknowledged is lost, no answer was wrong, and all was answered or told to retry."""
    async with await Engine.connect(settings) as engine:
        faults = await check(record, engine, subject)
    print(*sorted(record.counts.items()), *record.retries[:10], f"slowest {record.slowest:.1f} s", sep="\n")
    assert record.counts["written: acknowledged"] > 20
    assert record.counts["asked: whole"] > 20
    assert not record.faults, "\n".join(record.faults[:10])
    assert not faults, faults[:10]
    violations = checker.check(record.history, lag)
    assert not violations, "\n".join(map(str, violations[:5]))


async def _settled(engine: Engine, subject: Watched, texts: dict[str, str]) -> list[str]:
    """Faults of sizes and keys that stay."""
    faults: list[str] = []
    for _ in range(SETTLE_ATTEMPTS):
        faults = await _sizes(engine, texts) + await asyncio.to_thread(_keys, subject, engine.settings.corpus, texts)
        if not faults:
            break
        await asyncio.sleep(0.2)
    return faults


async def _sizes(engine: Engine, texts: dict[str, str]) -> list[str]:
    found = await engine.catalogue.corpora()
    sizes = [one.documents for one in found.corpora if one.name == engine.settings.corpus]
    return [] if sizes == [len(texts)] and not found.partial else [f"the corpus tells {sizes}, wanted {len(texts)}"]


def _keys(subject: Watched, corpus: str, texts: dict[str, str]) -> list[str]:
    """Passages without a document, documents with too few or too many, keys on two masters."""
    names, counts = Counter[str](), dict[str, int]()
    for master in subject.masters():
        with subject.client(master.port) as client:
            names.update(key.decode() for key in client.scan_iter(f"*:{corpus}:*", count=1_000))
            for name in texts:
                key = keys.doc(corpus, name)
                if master.owns(int(key_slot(key.encode()))) and (count := client.hget(key, "passages")) is not None:
                    counts[name] = int(count)
    passages = Counter(keys.parse_passage(key).document for key in names if key.startswith("passage:"))
    faults = [f"{key} is on {count} masters" for key, count in names.items() if count > 1]
    return faults + [
        f"{name} has {passages[name]} passages, wanted {counts.get(name, 0)}"
        for name in passages.keys() | counts.keys()
        if passages[name] != counts.get(name, 0)
    ]


async def _is_ranked(engine: Engine, name: str) -> bool:
    ranked = await engine.ranking.rank(engine.question(name), 50)
    return name in {passage.document for passage in ranked.passages}


async def _unequal(engine: Engine, alone: Engine, texts: dict[str, str]) -> list[str]:
    """Questions that one shard, with the same documents, answers otherwise."""
    for name, text in texts.items():
        await alone.documents.put(Document(id=name, title=name, text=text))
    faults = []
    for name in documents.NAMES:
        for question in documents.questions(name):
            outcomes = []
            for asker in (engine, alone):
                try:
                    answer = await asker.ask(question.text, fresh=True, n_best=20)
                    outcomes.append((answer.answer, answer.document, answer.score, spans_of(answer), answer.partial))
                except ShardqaError as fault:
                    outcomes.append((fault.code, None, 0.0, (), False))
            three, one = outcomes
            if three != one:
                faults.append(f"{question.text!r}: three shards say {three[:3]}, one says {one[:3]}")
    return faults
