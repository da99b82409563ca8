"""`shardqa delete` and `rm`: remove documents from a corpus."""

from typing import Annotated

import typer

from shardqa.cli.connection import with_engine
from shardqa.cli.ingest import PUT_SECONDS
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import NOTHING, PARTLY, print_json, say
from shardqa.engine import Engine


@on_cluster
def delete(
    target: Target,
    ids: Annotated[list[str], typer.Argument(help="Document ids, as 'ask' shows them.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete documents with all that belongs to them: passages, tokens, cached answers.

    Example: shardqa delete lake-ysolde --corpus seeds

    Example: shardqa rm lake-ysolde --corpus seeds
    """
    settings = target.settings(corpus=corpus, timeout=PUT_SECONDS)

    async def work(engine: Engine) -> dict[str, bool]:
        return {id_: await engine.documents.delete(settings.corpus, id_) for id_ in dict.fromkeys(ids)}

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
