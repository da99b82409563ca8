"""The state of each part in its own words, for a soak that does not recover."""

import asyncio
from collections.abc import Iterator

from redis.exceptions import RedisError

from shardqa.engine import Engine
from shardqa.engine.reading import Place
from shardqa.errors import ShardqaError
from tests.faults.subject import Subject

QUESTION = "Who built the bridge of Arnsby?"


async def lines(engine: Engine, subject: Subject, last: str) -> list[str]:
    lines = [
        f"    the last question: {last}",
        f"    the engine's masters: {[node.name for node in engine.shards.nodes()]}",
    ]
    for reply in await engine.shards.everywhere("RG.TRIGGER", "Terms", engine.settings.corpus, QUESTION):
        lines.append(f"    Terms on {reply.node}: {reply.fault or 'answers'}")
    try:
        ranked = await engine.ranking.rank(engine.question(QUESTION, fresh=True), 20)
        for place in sorted({Place(passage.node, passage.tag) for passage in ranked.passages}):
            try:
                await engine.readers.one(ranked, place, 1)
            except ShardqaError as fault:
                lines.append(f"    an answer of {place}: {fault.code}: {fault}")
    except ShardqaError as fault:
        lines.append(f"    Rank: {fault.code}: {fault}")
    return lines + await asyncio.to_thread(lambda: list(_nodes(subject)))


def _nodes(subject: Subject) -> Iterator[str]:
    for port in subject.ports:
        try:
            with subject.client(port) as client:
                nodes = client.execute_command("CLUSTER", "NODES").decode().splitlines()
                mine = next(line for line in nodes if "myself" in line)
                worker = client.info("shardqa")
                yield f"    {port}: {mine[40:200]}; models {client.keys('model:*')}"
                yield f"        worker {worker['shardqa_worker_state']}, last end {worker['shardqa_worker_last_end']!r}"
        except RedisError as error:
            yield f"    {port}: {error}"
        log = subject.cluster.data / next(one.folder for one in subject.cluster.state.nodes if one.port == port)
        yield from (
            f"        {line[:300]}" for line in (log / "redis.log").read_text(errors="replace").splitlines()[-8:]
        )
