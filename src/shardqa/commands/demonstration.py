"""What `make run` shows once everything runs: one true answer, and where to look next."""

import asyncio
import shlex
from pathlib import Path
from shutil import which

from rich.text import Text

from shardqa import keys
from shardqa.answer import Answer, RankedList
from shardqa.commands import answers
from shardqa.commands.connection import settings_of
from shardqa.commands.output import out, say
from shardqa.commands.service import Service
from shardqa.engine import Engine
from shardqa.loader.files import Reading
from shardqa.loader.ingest import Summary, ingest

CORPUS = "seeds"
QUESTION = "Who planned the reed beds on the shore of Lake Ysolde?"


def show(service: Service, seeds: Path, question: str) -> None:
    """Ingests, asks, and prints three lines for redis-cli that go on from there. Raises ShardqaError."""
    summary, answer, ranked = asyncio.run(_ask(service, seeds, question))
    say(
        f"{summary.documents} documents ingested, {summary.unchanged} were there already, {summary.skipped} skipped "
        f"({summary.seconds:.1f} s)"
    )
    out.print()
    answers.show(answer)
    out.print()
    out.print(Text.assemble("page      ", (service.page, "bold")))
    for line in redis_cli_lines(service.cluster.state.port, ranked):
        out.print(Text.assemble("try       ", (line, "bold")))


async def _ask(service: Service, seeds: Path, question: str) -> tuple[Summary, Answer, RankedList]:
    settings = settings_of(service.cluster.seed(), None, None, corpus=CORPUS, timeout=60.0)
    engine = await Engine.connect(settings)
    try:
        summary = await ingest(engine, Reading([seeds]), CORPUS)
        return summary, await engine.ask(question, fresh=True), await engine.rank(question, CORPUS, 5)
    finally:
        await engine.close()


def redis_cli_lines(port: int, ranked: RankedList) -> list[str]:
    """The shard's answer as a plain GET, why it ranked so, and the state of a shard."""
    best = ranked.passages[0]
    question, port_of_best = ranked.question, best.node.rpartition(":")[2]
    answer = keys.answer(
        ranked.corpus, best.tag, ranked.epochs[best.tag], settings_of(None, None, None).model, 3, question
    )
    rank = keys.rank(ranked.corpus, best.tag, question)
    cli = "valkey-cli" if which("valkey-cli") and not which("redis-cli") else "redis-cli"
    return [
        f"{cli} -c -p {port} GET {shlex.quote(answer)}",
        f"{cli} -c -p {port} ZREVRANGEBYSCORE {shlex.quote(rank)} +inf -inf WITHSCORES",
        f"{cli} -p {port_of_best} INFO shardqa",
    ]
