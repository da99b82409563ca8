"""`shardqa bridges on` and `off`: whether titles that a question's first passages name are followed."""

from __future__ import annotations

import typer

from shardqa.cli.connection import (
    CorpusArgument,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    settings_of,
    with_engine,
)
from shardqa.cli.output import print_json, say

app = typer.Typer(name="bridges", help="Follow titles from one document to another.", no_args_is_help=True)


@app.command()
def on(
    corpus: CorpusArgument,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Follow titles that the first passages name to their documents again, after 'off'; so it is by default.

    Example: shardqa bridges on handbook
    """
    _choose(corpus, True, as_json, redis, user, password)


@app.command()
def off(
    corpus: CorpusArgument,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Rank a corpus' passages by the question alone, whatever titles the first ones name.

    Example: shardqa bridges off minutes
    """
    _choose(corpus, False, as_json, redis, user, password)


def _choose(corpus: str, is_on: bool, as_json: bool, redis: str | None, user: str | None, password: str | None) -> None:
    settings = settings_of(redis, user, password)
    with_engine(settings, lambda engine: engine.choose_bridges(corpus, is_on))
    if as_json:
        print_json({"corpus": corpus, "bridges": is_on})
        return
    say(f"corpus {corpus}: bridges {'on' if is_on else 'off'}")
