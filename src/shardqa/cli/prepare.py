"""`shardqa prepare` and `module-path`: what a cluster of one's own needs to answer questions."""

from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.options import JsonOption, Target, on_cluster
from shardqa.cli.output import print_json, report
from shardqa.cluster import redis_server
from shardqa.loader import preparation
from shardqa.loader.models import STORE_SECONDS


@on_cluster
def prepare(
    target: Target,
    force: Annotated[bool, typer.Option("--force", help="Register the functions anew even where they are.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Register the functions and store reader and encoder on every shard of a cluster whose nodes have the module.

    Example: shardqa prepare --redis 10.0.0.5:7000
    """
    settings = target.settings(timeout=STORE_SECONDS)
    outcome = with_engine(settings, lambda engine: preparation.prepare(engine, force))
    tell(outcome, as_json)


def tell(outcome: preparation.Prepared, as_json: bool) -> None:
    reader, registered = outcome.reader.name, outcome.registered
    stored, encoder = outcome.stored, outcome.encoder_stored
    report(
        as_json,
        {"reader": reader, "registered": registered, "stored": stored, "encoder_stored": encoder},
        f"functions registered on: {', '.join(registered) or 'none, they were there'}",
        f"reader {reader} stored on: {', '.join(stored) or 'none, it was there'}",
        *([f"encoder stored on: {', '.join(encoder)}"] if encoder else []),
    )


def module_path(as_json: JsonOption = False) -> None:
    """Print the path of the Redis module, for loadmodule.

    Example: redis-server --loadmodule "$(shardqa module-path)" PYTHON "$(which python3)"
    """
    path = redis_server.module_path()
    if as_json:
        print_json({"path": str(path)})
    else:
        print(path)
