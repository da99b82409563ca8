"""`shardqa keys`: who may use the HTTP API."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from pydantic import ValidationError

from shardqa import filters
from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import NOTHING, PARTLY, print_json, print_table, report, say
from shardqa.engine import Engine
from shardqa.engine.api_keys import SCOPES, ApiKey, NewKey
from shardqa.errors import BadData, UnknownKey

app = typer.Typer(help="Keys to the HTTP API: make, list, remove.", no_args_is_help=True)
SPAN = re.compile(r"(\d+)([mhd])")
UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@app.command("create")
@on_cluster
def create(
    target: Target,
    name: Annotated[str, typer.Argument(help="Name of the key, usually who uses it.")],
    scope: Annotated[list[str], typer.Option("--scope", help=f"One or more of {', '.join(SCOPES)}; admin is all.")],
    corpus: Annotated[list[str] | None, typer.Option("--corpus", help="For this corpus only; may be repeated.")] = None,
    expires: Annotated[str | None, typer.Option("--expires", metavar="SPAN", help="After 30m, 12h or 90d.")] = None,
    filter: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help='Documents it may ask: {"metadata": {"team": "hr"}}.')
    ] = None,
    per_minute: Annotated[int | None, typer.Option("--per-minute", help="Requests it may make a minute.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key. It is printed once, and kept as a hash.

    Example: shardqa keys create intranet --scope ask --corpus handbook --expires 90d
    """
    wish = _wanted(name, scope, corpus, expires, filter, per_minute)
    settings = target.settings()
    record, key = with_engine(settings, lambda engine: engine.api_keys.create(wish))
    line = f"key {record.id} for {record.name}; send it as 'Authorization: Bearer …'. It is not shown again:"
    report(as_json, {"key": key, **_shown(record)}, line)
    if not as_json:
        print(key)


@app.command("ls")
@on_cluster
def list_(target: Target, as_json: JsonOption = False) -> None:
    """List the keys, without their secrets.

    Example: shardqa keys ls
    """
    keys = with_engine(target.settings(), lambda engine: engine.api_keys.all())
    if as_json:
        print_json([_shown(key) for key in keys])
        return
    columns = ("id", "name", "scopes", "corpora", "filter", "per minute", "expires")
    print_table(columns, [_row(key) for key in keys])


@app.command("rm")
@on_cluster
def rm(
    target: Target, ids: Annotated[list[str], typer.Argument(help="Ids of 'keys ls'.")], as_json: JsonOption = False
) -> None:
    """Remove keys. Every API process refuses them within three seconds.

    Example: shardqa keys rm 0f3a9c21b7d4
    """

    async def work(engine: Engine) -> dict[str, bool]:
        return {id_: await _was_there(engine, id_) for id_ in dict.fromkeys(ids)}

    outcome = with_engine(target.settings(), work)
    if as_json:
        print_json({"removed": outcome})
    for id_, was_there in outcome.items():
        if not was_there:
            say(f"there is no key with the id {id_[:40]!r}; 'shardqa keys ls' lists them")
        elif not as_json:
            say(f"removed {id_}")
    if not all(outcome.values()):
        raise typer.Exit(PARTLY if any(outcome.values()) else NOTHING)


async def _was_there(engine: Engine, id_: str) -> bool:
    try:
        await engine.api_keys.revoke(id_)
    except UnknownKey:
        return False
    return True


def _wanted(
    name: str,
    scopes: list[str],
    corpora: list[str] | None,
    expires: str | None,
    filter: str | None,
    per_minute: int | None,
) -> NewKey:
    """Returns the key that the options describe. Raises BadData."""
    try:
        return NewKey.model_validate(
            {
                "name": name,
                "scopes": list(dict.fromkeys(scopes)),
                "corpora": corpora or None,
                "filter": filters.of_text(filter) if filter else None,
                "per_minute": per_minute,
                "expires": _after(expires) if expires else None,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise BadData(f"{at or 'the key'}: {first['msg'].removeprefix('Value error, ')}") from None


def _after(span: str) -> datetime:
    match = SPAN.fullmatch(span)
    if match is None:
        raise BadData(f"--expires {span!r} is no span of time; say 30m, 12h or 90d")
    return datetime.now(UTC) + timedelta(**{UNITS[match[2]]: int(match[1])})


def _shown(key: ApiKey) -> dict[str, object]:
    return key.model_dump(mode="json", exclude={"digest"})


def _row(key: ApiKey) -> tuple[object, ...]:
    corpora = ", ".join(key.corpora) if key.corpora is not None else "all"
    expires = key.expires.isoformat(timespec="minutes") if key.expires else "never"
    return (key.id, key.name, ", ".join(key.scopes), corpora, filters.canonical(key.filter), key.per_minute, expires)
