"""Under load without any fault the history is right."""

import asyncio
from random import Random

from shardqa.cluster.local import LocalCluster
from shardqa.engine import Engine
from tests.faults import documents
from tests.faults.checker import check
from tests.faults.workload import Asker, Record, Writer, look, under_load
from tests.nodes import settings_of

SECONDS = 4.0
LAG = 5.0  # of kept answers of another process on a machine that is busy with other tests


async def test_what_askers_see_while_writers_write_is_right(cluster: LocalCluster, corpus: str) -> None:
    settings, record = settings_of(cluster, corpus=corpus, timeout=90), Record()
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
