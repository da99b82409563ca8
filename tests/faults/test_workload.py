"""Under load without any fault the history is right, and so it is on whichever number of shards."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from shardqa.schema import Document
from tests.faults import documents
from tests.faults.checker import check
from tests.faults.over_http import spans_of
from tests.faults.workload import Asker, Record, Stop, Writer, look, until
from tests.nodes import settings_of

SECONDS = 4.0
LAG = 5.0  # of kept answers of another process on a machine that is busy with other tests


def shown(found: list[object]) -> str:
    return f"{len(found)} violations:\n" + "\n".join(map(str, found[:5]))


async def test_what_askers_see_while_writers_write_is_right(cluster: LocalCluster, corpus: str) -> None:
    settings, record, stop = settings_of(cluster, corpus=corpus, timeout=30), Record(), Stop()
    writers = [Writer(record, settings, documents.NAMES[n::2], Random(n), 0, 0.02) for n in range(2)]
    askers = [Asker(record, settings, Random(n)) for n in range(3)]
    clients: list[Writer | Asker] = [*writers, *askers]
    await asyncio.gather(until(stop, SECONDS), *(one.run(stop) for one in clients))
    engine = await Engine.connect(settings)
    await look(record, engine)
    await engine.close()
    assert record.counts["written: acknowledged"]
    assert record.counts["asked: whole"]
    assert not record.faults
    found = check(record.history, LAG)
    assert not found, shown(list(found))


@pytest.fixture
def alone(start_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return start_cluster(shards=1)


async def test_answers_are_equal_on_one_and_three_shards(
    cluster: LocalCluster, corpus: str, alone: LocalCluster
) -> None:
    said = []
    for one in (cluster, alone):
        engine = await Engine.connect(settings_of(one, corpus=corpus, timeout=60))
        for version, name in enumerate(documents.NAMES):
            await engine.documents.put(Document(id=name, title=name, text=documents.text(name, version)))
        answers = [
            await engine.ask(question.text, fresh=True, n_best=20)
            for name in documents.NAMES
            for question in documents.questions(name)
        ]
        said.append([(answer.answer, answer.document, answer.score, spans_of(answer)) for answer in answers])
        await engine.close()
    assert said[0] == said[1]
    assert sum(answer is not None for answer, *_ in said[0]) > len(documents.NAMES)
