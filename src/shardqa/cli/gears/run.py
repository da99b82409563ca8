"""`shardqa gears run`: sends a script to the cluster, shows its progress, and prints its results."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from redis.exceptions import ConnectionError, RedisError, TimeoutError

from shardqa.cli.connection import node_client, seed_of
from shardqa.cli.gears import functions
from shardqa.cli.gears.functions import Masters
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import FAILED, PARTLY, counted, err, print_json, say
from shardqa.cli.progress import ProgressLines
from shardqa.errors import ClusterUnavailable, ShardqaError

SCRIPT_SECONDS = 900.0  # seconds for one command: a script may import large packages, and pip may install them
ID_SECONDS = 5.0  # seconds for the id of an execution, once Ctrl-C was pressed
LOOK_SECONDS = 0.2  # between two looks at an execution
ERRORS_SHOWN = 20  # errors that are printed; --json has all
LAST_OPTION = "REQUIREMENTS"  # takes all words that follow


class ScriptFailed(ShardqaError):
    """Redis has refused a script, or the command that ends it."""

    status = 500


@dataclass(slots=True)
class ScriptOutcome:
    """The state of a script that was sent."""

    registered: bool  # it ran nothing
    id: str | None = None  # of its execution
    status: str | None = None
    results: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)  # by shard
    seconds: float = 0.0


@on_cluster
def run(
    target: Target,
    script: Annotated[Path, typer.Argument(help="A Python file.")],
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS", help="Further words of RG.PYEXECUTE: ID name, UPGRADE, UNBLOCKING ..."),
    ] = None,
    requirement: Annotated[list[str] | None, typer.Option("--requirement", metavar="NAME", help="Packages.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Send a script to the cluster: it registers its functions, or runs with its progress on stderr.

    Example: shardqa gears run wordcount.py ID wordcount UPGRADE
    """
    code = script.read_text()
    words = _words(list(args or ()), list(requirement or ()))
    outcome = send(masters_of(target), code, words)
    _print(outcome, as_json)
    if outcome.status == "aborted":
        raise typer.Exit(FAILED)
    if outcome.errors:
        raise typer.Exit(PARTLY)


def _words(args: list[str], requirements: list[str]) -> list[str]:
    """Returns the words that follow the script in RG.PYEXECUTE."""
    upper = [word.upper() for word in args]
    if LAST_OPTION in upper:
        at = upper.index(LAST_OPTION)
        args, requirements = args[:at], [*args[at + 1 :], *requirements]
    return [*args, *([LAST_OPTION, *requirements] if requirements else [])]


def masters_of(target: Target) -> Masters:
    """Connects to the masters. Raises ShardqaError."""
    settings = target.settings()
    host, _, port = seed_of(settings).rpartition(":")
    try:
        return Masters(partial(node_client, settings, timeout=SCRIPT_SECONDS), (host, int(port)))
    except RedisError as error:
        raise fault_of(error, settings.redis) from error


def fault_of(error: RedisError, address: str) -> ShardqaError:
    if isinstance(error, ConnectionError | TimeoutError):
        return ClusterUnavailable(f"no cluster at {address} ({error}); start one by 'shardqa up' or give --redis")
    return ScriptFailed(f"{address} replied: {error}")


def send(masters: Masters, code: str, words: list[str]) -> ScriptOutcome:
    """Sends a script and follows what it runs to the end, unless `words` say UNBLOCKING; Ctrl-C aborts that.

    Raises ShardqaError.
    """
    initiator, start = masters.addresses[0], time.monotonic()
    is_detached = "UNBLOCKING" in (word.upper() for word in words)
    extra = [] if is_detached else ["UNBLOCKING"]
    try:
        reply = _sent(masters, initiator, "RG.PYEXECUTE", code, *extra, *words)
        if reply == "OK":
            return ScriptOutcome(registered=True, seconds=time.monotonic() - start)
        if is_detached:
            return ScriptOutcome(registered=False, id=reply, status="running")
        return _followed(masters, initiator, ScriptOutcome(registered=False, id=reply), start)
    except RedisError as error:
        raise fault_of(error, f"{initiator[0]}:{initiator[1]}") from error


def _sent(masters: Masters, initiator: tuple[str, int], *words: str) -> Any:
    """Sends a command from a thread: Ctrl-C must not lose the id of an execution that has begun. Raises RedisError."""
    reply: Future[Any] = Future()

    def work() -> None:
        try:
            reply.set_result(functions.text(masters.on(initiator, *words)))
        except RedisError as error:
            reply.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return reply.result()
    except KeyboardInterrupt:
        with suppress(RedisError, FutureTimeout):
            _abort(masters, initiator, reply.result(ID_SECONDS))
        raise


def _abort(masters: Masters, initiator: tuple[str, int], id: str) -> None:
    with suppress(RedisError):  # it is done, or was no execution
        masters.on(initiator, "RG.ABORTEXECUTION", id)


def _followed(masters: Masters, initiator: tuple[str, int], outcome: ScriptOutcome, start: float) -> ScriptOutcome:
    assert outcome.id is not None
    try:
        with showing() as show:
            while outcome.status in (None, "running"):
                time.sleep(LOOK_SECONDS)
                _look(masters, initiator, outcome)
                outcome.seconds = time.monotonic() - start
                show(outcome)
    except KeyboardInterrupt:
        _abort(masters, initiator, outcome.id)
        raise
    outcome.results, outcome.errors = functions.text(masters.on(initiator, "RG.GETRESULTS", outcome.id))
    masters.on(initiator, "RG.DROPEXECUTION", outcome.id)
    return outcome


def _look(masters: Masters, initiator: tuple[str, int], outcome: ScriptOutcome) -> None:
    """Reads the progress of each shard. The initiator comes first: the execution is done when that shard is."""
    assert outcome.id is not None
    for number, part in enumerate(functions.parts(masters, initiator, outcome.id)):
        outcome.records[part["shard"]] = int(part["records"])
        if number == 0:
            outcome.status, outcome.errors = str(part["status"]), part["errors"]


def progress_of(outcome: ScriptOutcome) -> dict[str, Any]:
    total = sum(outcome.records.values())
    return {
        "execution": outcome.id,
        "records": total,
        "by_shard": dict(outcome.records),
        "per_second": round(total / outcome.seconds) if outcome.seconds else None,
        "errors": len(outcome.errors),
        "seconds": round(outcome.seconds, 1),
    }


@contextmanager
def showing() -> Iterator[Callable[[ScriptOutcome], None]]:
    """Yields a callback for each look: a line per shard on a terminal, a line of JSON now and then elsewhere."""
    if not err.is_terminal:
        lines = ProgressLines()
        yield lambda outcome: lines.write(progress_of(outcome))
        return
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), TextColumn("{task.fields[counts]}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        tasks = {"all": bar.add_task("all shards", total=None, counts="")}

        def show(outcome: ScriptOutcome) -> None:
            now = progress_of(outcome)
            for shard, records in now["by_shard"].items():
                if shard not in tasks:
                    tasks[shard] = bar.add_task(f"shard {shard[:8]}", total=None, counts="")
                bar.update(tasks[shard], counts=f"{records:,} records")
            counts = f"{now['records']:,} records, {now['per_second'] or 0:,} a second, {now['errors']} errors"
            bar.update(tasks["all"], counts=counts)

        yield show


def _print(outcome: ScriptOutcome, as_json: bool) -> None:
    if as_json:
        print_json(asdict(outcome))
        return
    for result in outcome.results:
        sys.stdout.write((result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)) + "\n")
    sys.stdout.flush()
    for error in outcome.errors[:ERRORS_SHOWN]:
        say(error)
    if len(outcome.errors) > ERRORS_SHOWN:
        say(f"and {len(outcome.errors) - ERRORS_SHOWN} more errors; --json has them")
    if outcome.registered:
        say("registered")
    elif outcome.status == "running":
        say(f"execution {outcome.id} runs; 'shardqa gears ls' shows it, RG.GETRESULTS has its results")
    else:
        read, shards = sum(outcome.records.values()), len(outcome.records)
        say(f"{outcome.status}: {counted(read, 'record')} on {counted(shards, 'shard')} in {outcome.seconds:.1f} s")
