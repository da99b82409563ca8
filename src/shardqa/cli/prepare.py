"""`shardqa prepare` and `module-path`: what a cluster of one's own needs to answer questions."""

from typing import Annotated

import typer

from shardqa.cli.connection import PasswordOption, RedisOption, UserOption, settings_of, with_engine
from shardqa.cli.output import say
from shardqa.cluster import redis_server
from shardqa.loader import preparation

STORE_SECONDS = 120.0  # to store a reader on a shard whose worker still starts


def prepare(
    force: Annotated[bool, typer.Option("--force", help="Register the functions anew even where they are.")] = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Register the functions and store the reader on every shard of a cluster whose nodes have the module.

    Example: shardqa prepare --redis 10.0.0.5:7000
    """
    settings = settings_of(redis, user, password, timeout=STORE_SECONDS)
    done = with_engine(settings, lambda engine: preparation.prepare(engine, force))
    say(f"functions registered on: {', '.join(done.registered) or 'none, they were there'}")
    say(f"reader {done.reader.name} stored on: {', '.join(done.stored) or 'none, it was there'}")


def module_path() -> None:
    """Print the path of the Redis module, for loadmodule.

    Example: redis-server --loadmodule "$(shardqa module-path)" PYTHON "$(which python3)"
    """
    print(redis_server.module_path())
