"""`shardqa backup` and `shardqa restore`: a cluster into one file, and out of it."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.ingest import PUT_SECONDS
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import PARTLY, counted, out, print_json, say
from shardqa.loader.backup.dump import Dumped, dump
from shardqa.loader.backup.file import BackupReader, RecordKind
from shardqa.loader.backup.restoring import Restored, restore

SHOWN = 20  # of what was left out

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup's file.", dir_okay=False)]


@on_cluster
def backup(
    target: Target,
    file: FileArgument,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    all_keys: Annotated[bool, typer.Option("--all-keys", help="Also save the keys that are not shardqa's.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write documents, readers, functions, API keys and settings of a cluster into one file, with a checksum.

    The file can be restored into a cluster of another number of shards. It is there whole or not at all. Documents that
    are put or deleted meanwhile are in it or not, each as it was at one moment. The file holds all that the documents
    say: keep it as safe as them.

    Example: shardqa backup monday.shardqa
    """
    settings = target.settings(timeout=PUT_SECONDS)
    dumped = with_engine(settings, lambda engine: dump(engine, file, force, all_keys))
    if as_json:
        print_json(asdict(dumped))
    else:
        out.print(
            f"{dumped.path}: {counted(dumped.documents, 'document')}, {_others(dumped)}, {dumped.bytes:,} bytes",
            markup=False,
        )
    _tell_left_out(dumped.left_out)


@on_cluster
def restore_(
    target: Target,
    file: FileArgument,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Restore into a cluster that is not empty; what has the same name is replaced."),
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Register functions of other users with the rights of this one.")
    ] = False,
    without: Annotated[
        list[RecordKind] | None,
        typer.Option("--without", help="Leave out all of a kind: api-key, setting, scoring, model, function …"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file and tell what it holds; no cluster is needed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read a backup into a cluster, of any number of shards; returns when its documents are searchable.

    The whole file is checked before anything is written. The cluster must be empty unless --merge is given; that is
    also how a restore which broke off goes on.

    Example: shardqa restore monday.shardqa --redis 10.0.0.5:7000
    """
    if check:
        return _check(file, as_json)
    settings = target.settings(timeout=PUT_SECONDS)
    restored = with_engine(settings, lambda engine: restore(engine, file, merge, adopt, without or ()))
    if as_json:
        print_json(asdict(restored))
    else:
        _report(restored)
    return _tell_left_out(restored.left_out)


def _check(file: Path, as_json: bool) -> None:
    with BackupReader(file) as reader:
        counts, about = reader.check(), reader.about()
    if as_json:
        print_json({"path": str(file), "about": about, "records": counts})
    else:
        held = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
        origin = f"made {about['made']} by shardqa {about['shardqa']} of {counted(int(str(about['shards'])), 'shard')}"
        out.print(f"{file} is whole: {held}; {origin}", markup=False)


def _report(restored: Restored) -> None:
    size = f"{counted(restored.documents, 'document')} ({counted(restored.passages, 'passage')})"
    out.print(f"restored: {size}, {_others(restored)}", markup=False)


def _others(counts: Dumped | Restored) -> str:
    own = (counts.models, "model"), (counts.functions, "function"), (counts.api_keys, "API key")
    rest = (counts.settings, "setting"), (counts.scorings, "scoring")
    listed = ", ".join(counted(*one) for one in own)
    return f"{listed}, {' and '.join(counted(*one) for one in rest)} of corpora, {counted(counts.keys, 'key')}"


def _tell_left_out(reasons: Sequence[str]) -> None:
    for reason in reasons[:SHOWN]:
        say(f"left out: {reason}")
    if len(reasons) > SHOWN:
        say(f"left out: {len(reasons) - SHOWN} more; --json lists all")
    if reasons:
        raise typer.Exit(PARTLY)
