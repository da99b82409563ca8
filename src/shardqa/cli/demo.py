"""`shardqa demo` and `make run`: one true answer once everything runs, and where to look next."""

import asyncio
import shlex
from dataclasses import asdict
from pathlib import Path
from shutil import which
from typing import Annotated, TypeAlias

import typer
from rich.text import Text

import shardqa
from shardqa import keys
from shardqa.cli import ask
from shardqa.cli.connection import DEFAULT_DATA, settings_of
from shardqa.cli.options import DataOption, JsonOption
from shardqa.cli.output import counted, out, print_json, say
from shardqa.cli.service import Service
from shardqa.cli.up import HttpOption, PortOption, ShardsOption, described, run
from shardqa.cluster.local import ClusterOptions
from shardqa.engine import Engine
from shardqa.engine.rank import RankedList
from shardqa.errors import SetupError
from shardqa.files.folders import SourceFiles
from shardqa.loader.ingest import ingest
from shardqa.loader.kept_files import KeptFiles
from shardqa.loader.push import push_pair
from shardqa.loader.summary import Summary
from shardqa.schema import Answer

Pair: TypeAlias = tuple[Path, Path] | None
CORPUS = "seeds"
QUESTION = "Who planned the reed beds on the shore of Lake Ysolde?"


def demo(
    documents: Annotated[Path | None, typer.Argument(help="Folder of documents; without it, the shipped ones.")] = None,
    shards: ShardsOption = None,
    port: PortOption = None,
    http: HttpOption = None,
    data: DataOption = DEFAULT_DATA,
    question: Annotated[str, typer.Option("--question", help="What to ask.")] = QUESTION,
    pair: Annotated[Pair, typer.Option("--pair", help="Reader and encoder of many languages, to push first.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Start everything, ingest the example documents, ask a question; then stay in the foreground like 'up'.

    Example: shardqa demo
    """
    seeds = shipped_seeds() / "documents" if documents is None else documents
    files = SourceFiles([seeds])  # told before nodes are started, where there is no such folder
    options = ClusterOptions(data=data, shards=shards, port=port)
    run(options, http, lambda running: show(running, files, question, pair, as_json))


def show(service: Service, files: SourceFiles, question: str, pair: Pair, as_json: bool) -> None:
    """Ingests, asks, and prints three lines for redis-cli that go on from there. Raises ShardqaError."""
    summary, answer, ranking = asyncio.run(_ask(service, files, question, pair))
    lines = redis_cli_lines(service.cluster.state.port, ranking)
    if as_json:
        record = {"ingested": asdict(summary), "answer": answer.model_dump(mode="json"), "try": lines}
        print_json({**described(service), **record})
        return
    say(
        f"{counted(summary.documents, 'document')} ingested, {summary.unchanged} were there already, "
        f"{summary.skipped} skipped ({summary.seconds:.1f} s)"
    )
    out.print()
    ask.show(answer)
    out.print()
    out.print(Text.assemble("page      ", (service.page, "bold")))
    for line in lines:
        out.print(Text.assemble("try       ", (line, "bold")))


async def _ask(service: Service, files: SourceFiles, question: str, pair: Pair) -> tuple[Summary, Answer, RankedList]:
    settings = settings_of(service.cluster.seed(), None, None, corpus=CORPUS, timeout=60.0)
    engine = await Engine.connect(settings)
    try:
        if pair is not None:
            await push_pair(engine, *pair)
        kept = KeptFiles(engine, CORPUS, files.read)
        summary = await ingest(engine, files, CORPUS, replace=True, tell=kept.note)
        await kept.keep()
        return summary, await engine.ask(question, fresh=True), await engine.ranking.rank(engine.question(question), 5)
    finally:
        await engine.close()


def redis_cli_lines(port: int, ranking: RankedList) -> list[str]:
    """Returns lines to type into redis-cli: a shard's answer by a plain GET, and the state of a shard."""
    best = ranking.passages[0]
    question, port_of_best = ranking.question.text, best.node.rpartition(":")[2]
    answer = keys.answer(
        best.corpus, best.tag, ranking.epochs[best.corpus, best.tag], settings_of(None, None, None).model, 3, question
    )
    cli = "valkey-cli" if which("valkey-cli") and not which("redis-cli") else "redis-cli"
    return [f"{cli} -c -p {port} GET {shlex.quote(answer)}", f"{cli} -p {port_of_best} INFO shardqa"]


def shipped_seeds() -> Path:
    """Returns the folder with `documents/` and `questions.jsonl`. Raises SetupError where the package lacks it."""
    folder = Path(shardqa.__file__).parent / "seeds"
    if not (folder / "questions.jsonl").is_file():
        raise SetupError(f"{folder} is not there, which the package brings; install it whole, or name your own files")
    return folder
