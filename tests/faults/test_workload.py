"""Under load without any fault the history is right, and so it is on whichever number of shards."""

import asyncio
from random import Random

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.checker import check
from tests.faults.over_http import spans_of
from tests.faults.workload import Asker, Record, Writer, look, under_load
from tests.nodes import settings_of

SECONDS = 4.0
LAG = 5.0  # of kept answers of another process on a machine that is busy with other tests


async def test_what_askers_see_while_writers_write_is_right(cluster: LocalCluster, corpus: str) -> None:
    settings, record = settings_of(cluster, corpus=corpus, timeout=30), Record()
    clients: list[Writer | Asker] = [
        *(Writer(record, settings, documents.NAMES[n::2], Random(n), 0, 0.02) for n in range(2)),
        *(Asker(record, settings, Random(n)) for n in range(3)),
    ]
    await under_load(clients, asyncio.sleep(SECONDS))
    async with await Engine.connect(settings) as engine:
        await look(record, engine)
    assert record.counts["written: acknowledged"]
    assert record.counts["asked: whole"]
    assert not record.faults
    violations = check(record.history, LAG)
    assert not violations, "\n".join(map(str, violations[:5]))


async def test_answers_are_equal_on_one_and_three_shards(
    cluster: LocalCluster, one_shard: LocalCluster, corpus: str
) -> None:
    outcomes = []
    for shards in (cluster, one_shard):
        async with await Engine.connect(settings_of(shards, corpus=corpus, timeout=60)) as engine:
            for version, name in enumerate(documents.NAMES):
                await engine.documents.put(Document(id=name, title=name, text=documents.text(name, version)))
            answers = [
                await engine.ask(question.text, fresh=True, n_best=20)
                for name in documents.NAMES
                for question in documents.questions(name)
            ]
        outcomes.append([(answer.answer, answer.document, answer.score, spans_of(answer)) for answer in answers])
    assert outcomes[0] == outcomes[1]
    assert sum(answer is not None for answer, *_ in outcomes[0]) > len(documents.NAMES)
