"""`shardqa delete` and `rm`: remove documents from a corpus."""

from typing import Annotated

import typer

from shardqa.cli.connection import (
    CorpusOption,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    settings_of,
    with_engine,
)
from shardqa.cli.ingest import PUT_SECONDS
from shardqa.cli.output import NOTHING, PARTLY, print_json, say
from shardqa.engine import Engine


def delete(
    ids: Annotated[list[str], typer.Argument(help="Document ids, as 'ask' shows them.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Delete documents with all that belongs to them: passages, tokens, cached answers.

    Example: shardqa delete lake-ysolde --corpus seeds

    Example: shardqa rm lake-ysolde --corpus seeds
    """
    settings = settings_of(redis, user, password, corpus=corpus, timeout=PUT_SECONDS)

    async def work(engine: Engine) -> dict[str, bool]:
        return {id_: await engine.delete(settings.corpus, id_) for id_ in dict.fromkeys(ids)}

    deleted = with_engine(settings, work)
    if as_json:
        print_json({"corpus": settings.corpus, "deleted": deleted})
    for id_, was_there in deleted.items():
        if was_there and not as_json:
            say(f"deleted {id_}")
    missing = [id_ for id_, was_there in deleted.items() if not was_there]
    if missing:
        say(f"corpus {settings.corpus!r} has no document {', '.join(map(repr, missing))}")
        raise typer.Exit(NOTHING if len(missing) == len(deleted) else PARTLY)
