"""`shardqa backup` and `shardqa restore`: a cluster into one file, and out of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.ingest import PUT_SECONDS
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import PARTLY, counted, out, print_json, say
from shardqa.loader.backup.dump import dump
from shardqa.loader.backup.file import RecordKind, Report, count, records
from shardqa.loader.backup.restoring import restore

REASONS_SHOWN = 20  # of what was left out

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup's file.", dir_okay=False)]


@on_cluster
def backup(
    target: Target,
    file: FileArgument,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write documents, readers, functions, API keys and settings of a cluster into one file.

    The file can be restored into a cluster of another number of shards. It is there whole or not at all. Documents that
    are put or deleted meanwhile are in it or not, each as it was at one moment. The file holds all that the documents
    say: keep it as safe as them.

    Example: shardqa backup monday.shardqa
    """
    settings = target.settings(timeout=PUT_SECONDS)
    _report(file, with_engine(settings, lambda engine: dump(engine, file, force)), as_json)


@on_cluster
def restore_(
    target: Target,
    file: FileArgument,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Restore into a cluster that is not empty; what has the same name is replaced."),
    ] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Register others' functions with this user's rights.")] = False,
    without: Annotated[
        list[RecordKind] | None,
        typer.Option("--without", help="Leave out all of a kind: api-key, setting, words, model, function …"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file; tells what it holds, asks no cluster.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read a backup into a cluster, of any number of shards; returns when its documents are searchable.

    The whole file is checked before anything is written. The cluster must be empty unless --merge is given; that is
    also how a restore which broke off goes on.

    Example: shardqa restore monday.shardqa --redis 10.0.0.5:7000
    """
    if check:
        counts, about = count(file), json.loads(next(records(file)).fields["data"])
        if as_json:
            return print_json({"path": str(file), "about": about, "records": counts})
        shards = counted(about["shards"], "shard")
        made = f"made {about['made']} by shardqa {about['shardqa']} of {shards}"
        return out.print(f"{file} is whole: {_held(counts)}; {made}", markup=False)
    settings = target.settings(timeout=PUT_SECONDS)
    return _report(file, with_engine(settings, lambda one: restore(one, file, merge, adopt, without or ())), as_json)


def _report(file: Path, report: Report, as_json: bool) -> None:
    if as_json:
        size = file.stat().st_size
        print_json({"path": str(file), "bytes": size, "records": report.records, "left_out": report.left_out})
    else:
        out.print(f"{file}: {_held(report.records)}", markup=False)
    for reason in report.left_out[:REASONS_SHOWN]:
        say(f"left out: {reason}")
    if len(report.left_out) > REASONS_SHOWN:
        say(f"left out: {len(report.left_out) - REASONS_SHOWN} more; --json lists all")
    if report.left_out:
        raise typer.Exit(PARTLY)


def _held(records: Mapping[str, int]) -> str:
    kinds = [kind for kind in RecordKind if kind is not RecordKind.ABOUT and records.get(kind)]
    return ", ".join(f"{records[kind]:,} x {kind}" for kind in kinds) or "nothing"
