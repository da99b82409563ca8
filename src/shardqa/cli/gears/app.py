"""`shardqa gears ls`, `logs`, `stats` and `rm`: functions of all shards as one table; `run` is in run.py."""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer
from redis.exceptions import RedisError

from shardqa.cli.gears import functions, run
from shardqa.cli.gears.functions import LogLine, Masters, RegisteredFunction
from shardqa.cli.gears.run import masters_of
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import PARTLY, print_json, print_table, report, say
from shardqa.errors import ShardqaError

OWN = "shardqa"  # the session of `shardqa prepare`
FOLLOW_SECONDS = 0.5  # between two looks at the logs
WIDTH = 60  # characters of an error in a table

app = typer.Typer(name="gears", help="Functions in Redis: run, list, watch, remove.", no_args_is_help=True)
app.command("run")(run.run)

NameArgument = Annotated[str | None, typer.Argument(metavar="ID|NAME", help="An id, a session, a trigger or keys.")]


class UnknownFunction(ShardqaError):
    """No registration and no execution has this name."""

    status = 404


@app.command()
@on_cluster
def ls(target: Target, as_json: JsonOption = False) -> None:
    """List registrations and executions of all shards as one table.

    Example: shardqa gears ls
    """
    masters = masters_of(target)
    registrations, failures = functions.registrations(masters)
    executions, others = functions.executions(masters)
    failures |= others
    if as_json:
        records = [_record(one) for one in registrations]
        print_json({"registrations": records, "executions": [asdict(one) for one in executions], "failed": failures})
    else:
        columns = ("kind", "id", "name", "session", "state", "shards", "done", "errors", "queue")
        rows = [*map(_row, registrations)]
        for one in executions:
            kind = "event" if one.registered else "execution"
            rows.append((kind, one.id, "", one.session, one.status, len(one.shards), one.records, one.errors, ""))
        print_table(columns, rows)
    _tell_failed(failures)


def _row(function: RegisteredFunction) -> tuple[Any, ...]:
    state = function.mode if function.status == "OK" else function.status.lower()
    counts = function.counts
    numbers = (counts["succeeded"], counts["failed"] + counts["aborted"], counts["queue"])
    return (function.reader, function.id, function.name, function.session, state, len(function.shards), *numbers)


@app.command()
@on_cluster
def stats(target: Target, name: NameArgument = None, as_json: JsonOption = False) -> None:
    """Show what each registration has done: runs, failures, queue, and how long runs took (p50, p99).

    Example: shardqa gears stats Rank
    """
    masters = masters_of(target)
    registrations, failures = functions.registrations(masters)
    rows = [one for one in registrations if name is None or one.is_called(name)]
    if name is not None and not rows:
        raise _unknown(name)
    if as_json:
        print_json({"registrations": [_record(one) for one in rows], "failed": failures})
    else:
        columns = ("name", "id", "shards", *functions.COUNTS, "p50 ms", "p99 ms", "last error")
        print_table(columns, [_statistics(one) for one in rows])
    _tell_failed(failures)


def _statistics(function: RegisteredFunction) -> tuple[Any, ...]:
    counts = (function.counts[name] for name in functions.COUNTS)
    times = (function.percentile(0.5), function.percentile(0.99))
    return (function.name, function.id, len(function.shards), *counts, *times, (function.last_error or "")[:WIDTH])


def _record(function: RegisteredFunction) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(function).items() if key not in ("counts", "histogram")}
    counts = {name: function.counts[name] for name in functions.COUNTS}
    histogram = [[top, function.histogram[top]] for top in sorted(function.histogram)]
    times = {"p50_ms": function.percentile(0.5), "p99_ms": function.percentile(0.99), "histogram_us": histogram}
    return {**plain, **counts, **times}


@app.command()
@on_cluster
def logs(
    target: Target,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option(help="The last ones that are shown at first.", min=0)] = 100,
    grep: Annotated[str | None, typer.Option(metavar="TEXT", help="Lines that hold it, or whose session does.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what functions logged, and the errors of registrations: the last 500 lines of each shard's worker.

    Example: shardqa gears logs --follow
    """
    masters = masters_of(target)
    news, failures = functions.log_lines(masters, {})
    shown_lines = _holding(news, grep)
    shown_lines = shown_lines[len(shown_lines) - lines :] if lines < len(shown_lines) else shown_lines
    if as_json and not follow:
        print_json({"lines": [asdict(line) for line in shown_lines], "failed": failures})
    else:
        _print_lines(shown_lines, as_json)
    _tell_failed(failures, leave=not follow)
    last = {line.shard: line.number for line in news}
    while follow:
        time.sleep(FOLLOW_SECONDS)
        news, _ = functions.log_lines(masters, last)
        last |= {line.shard: line.number for line in news}
        _print_lines(_holding(news, grep), as_json)


def _holding(lines: Iterable[LogLine], words: str | None) -> list[LogLine]:
    return [line for line in lines if words is None or words in line.text or words in line.whose]


def _print_lines(lines: Sequence[LogLine], as_json: bool) -> None:
    for line in lines:
        at = datetime.fromtimestamp(line.number / 1e6)
        plain = f"{at:%H:%M:%S.%f} {line.shard} {line.level} {line.whose}: {line.text}"
        sys.stdout.write((json.dumps(asdict(line), ensure_ascii=False) if as_json else plain) + "\n")
    sys.stdout.flush()


@app.command()
@on_cluster
def rm(
    target: Target,
    name: Annotated[str, typer.Argument(metavar="ID|NAME", help="Of registrations or of an execution.")],
    as_json: JsonOption = False,
) -> None:
    """Unregister functions by id, session, trigger or keys, on all shards; or abort and drop an execution by its id.

    Example: shardqa gears rm wordcount
    """
    masters = masters_of(target)
    registrations, failures = functions.registrations(masters)
    targets = [one for one in registrations if one.is_called(name)]
    if any(one.session == OWN for one in targets):
        raise OwnFunction(
            f"{name!r} is of shardqa itself, and no question is answered without it; remove it by its id with "
            "RG.UNREGISTER where that is meant"
        )
    runs = _end_executions(masters, name)
    if not targets and not runs:
        raise _unknown(name)
    for one in targets:
        failures |= _unregister(masters, one)
    record = {"unregistered": [one.id for one in targets], "executions": runs, "failed": failures}
    lines = [f"unregistered {one.name} ({one.id})" for one in targets]
    report(as_json, record, *lines, *(f"dropped execution {id}" for id in runs))
    _tell_failed(failures)


class OwnFunction(ShardqaError):
    """The function to remove belongs to `shardqa prepare`."""

    status = 409


def _unregister(masters: Masters, function: RegisteredFunction) -> dict[str, str]:
    """Unregisters a function on each shard that still has it. Returns the refusals, by address."""
    failures = {}
    for shard, id in zip(function.shards, function.ids, strict=True):
        try:
            masters.on(masters.address(shard), "RG.UNREGISTER", id)
        except RedisError as error:
            if "does not exist" not in str(error):
                failures[shard] = str(error)
    return failures


def _end_executions(masters: Masters, id: str) -> list[str]:
    executions, _ = functions.executions(masters)
    execution = next((one for one in executions if one.id == id), None)
    if execution is None:
        return []
    for words in (["RG.ABORTEXECUTION"] if execution.status in ("running", "created") else []), ["RG.DROPEXECUTION"]:
        for shard in execution.shards if words else ():
            try:
                masters.on(masters.address(shard), words[0], id)
            except RedisError as error:
                if "does not exist" not in str(error):
                    raise run.fault_of(error, shard) from error
    return [id]


def _unknown(name: str) -> UnknownFunction:
    return UnknownFunction(f"there is no function {name[:80]!r}; 'shardqa gears ls' lists ids and names")


def _tell_failed(failures: dict[str, str], leave: bool = True) -> None:
    for shard, why in failures.items():
        say(f"shard {shard}: {why}")
    if failures and leave:
        raise typer.Exit(PARTLY)
