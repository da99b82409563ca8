"""`shardqa corpus retokenise`: a corpus cut into passages and word pieces anew, while it goes on answering."""

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, OneCorpusOption, Target, on_cluster
from shardqa.cli.output import PARTLY, counted, err, report
from shardqa.cli.progress import ProgressLines
from shardqa.engine import Engine
from shardqa.schema import Retokenised


@on_cluster
def retokenise(target: Target, corpus: OneCorpusOption, as_json: JsonOption = False) -> None:
    """Cut a corpus into passages and word pieces anew, on all shards, while it goes on answering. Unchanged ones stay.

    Example: shardqa corpus retokenise --corpus handbook
    """
    done = with_engine(target.settings(), lambda engine: _work(engine, corpus))
    line = (
        f"corpus {corpus}: {counted(done.done, 'document')}, {done.changed:,} of them changed, {done.failed:,} failed"
    )
    report(as_json, done.model_dump(mode="json"), line, *(f"  {error}" for error in done.errors))
    if done.failed:
        raise typer.Exit(PARTLY)


async def _work(engine: Engine, corpus: str) -> Retokenised:
    columns = (
        TextColumn("retokenise"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} documents"),
    )
    now: Retokenised | None = None
    with Progress(*columns, TimeRemainingColumn(), console=err, transient=True, disable=not err.is_terminal) as bar:
        task, lines = bar.add_task("retokenise", total=1), ProgressLines()
        async for now in engine.retokenising.run(corpus):
            bar.update(task, completed=now.done, total=max(now.documents, now.done, 1))
            if not err.is_terminal:
                lines.write(now.model_dump(mode="json", exclude={"errors"}))
    assert now is not None
    return now
