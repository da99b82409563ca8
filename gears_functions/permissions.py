"""Rights that a client must have itself before a function of this folder acts for it.

The functions are registered as privileged: a client that only asks may neither read passages nor write the index's
keys, and they do both. So each demands first what the client would need to have its effect by plain commands. All
raise redis.ResponseError (NOPERM) as it stands, which names user, command and key.
"""

from collections.abc import Sequence

from shardqa import keys
from shardqa.worker.runtime import Argument, Runtime


async def to_ask(runtime: Runtime, corpus: str) -> None:
    """Demands to read the answers of a corpus: its terms and ranking are parts of them."""
    await runtime.demand(_asking(runtime, corpus))


async def to_ask_with_statistics(runtime: Runtime, corpus: str) -> None:
    """Demands to store final answers too: wrong statistics would put a wrong one where others find it."""
    await runtime.demand(_asking(runtime, corpus), ("SET", keys.ask(corpus, "0", "model", 1, 1, "question"), ""))


async def corpora_to_ask(runtime: Runtime, corpora: Sequence[str]) -> list[str]:
    """Returns the corpora that the client may ask."""
    rights = await runtime.may([_asking(runtime, corpus) for corpus in corpora])
    return [corpus for corpus, may in zip(corpora, rights, strict=True) if may]


async def to_write(runtime: Runtime, *names: str) -> None:
    """Demands to store documents by HSET, which would do the same."""
    await runtime.demand(*(("HSET", key, "text", "") for key in names))


async def to_read(runtime: Runtime, corpus: str) -> None:
    """Demands to read documents by HGETALL: a list of them is a part of each."""
    await runtime.demand(("HGETALL", keys.doc(corpus, "document")))


async def to_drop(runtime: Runtime, corpus: str) -> None:
    """Demands to delete any document of a corpus."""
    await runtime.demand(("UNLINK", keys.doc(corpus, "document")))


async def to_delete(runtime: Runtime, key: str) -> None:
    await runtime.demand(("UNLINK", key))


async def of_shards(runtime: Runtime) -> None:
    """Demands what only shards have, as the user of their replication."""
    await runtime.demand(("DEBUG", "HELP"))


def _asking(runtime: Runtime, corpus: str) -> tuple[Argument, ...]:
    return ("GET", keys.answer(corpus, runtime.hashtag(), 0, "model", 1, "question"))
