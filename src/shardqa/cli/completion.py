"""Names that shells complete, of corpora and functions, read live. Silent and quick, whatever is wrong."""

import asyncio

from shardqa.errors import ShardqaError

SECONDS = 2.0  # a shell waits for it


def corpora(incomplete: str) -> list[str]:
    """Returns the corpora whose names begin so; none where no cluster answers in time."""
    from shardqa.cli.connection import settings_of
    from shardqa.engine import Engine

    async def names() -> list[str]:
        async with asyncio.timeout(SECONDS):
            async with await Engine.connect(settings_of(None, None, None)) as engine:
                return [one.name for one in (await engine.catalogue.corpora()).corpora]

    try:
        names_of_corpora = asyncio.run(names())
    except (ShardqaError, OSError):  # a TimeoutError is an OSError
        return []
    return [name for name in names_of_corpora if name.startswith(incomplete)]


def functions(incomplete: str) -> list[str]:
    """Returns the ids and names of registrations that begin so."""
    from redis.exceptions import RedisError

    from shardqa.cli.connection import node_client, seed_of, settings_of
    from shardqa.cli.gears.functions import Masters, registrations

    try:
        settings = settings_of(None, None, None)
        host, _, port = seed_of(settings).rpartition(":")
        registered_functions, _ = registrations(
            Masters(lambda host, port: node_client(settings, host, port, SECONDS), (host, int(port)))
        )
    except (ShardqaError, OSError, RedisError):
        return []
    words = {word for function in registered_functions for word in (function.name, function.session, *function.ids)}
    return sorted(word for word in words if word.startswith(incomplete))
