"""`shardqa mcp`: the documents as tools of an assistant that speaks the Model Context Protocol."""

from shardqa.cli.connection import CorpusOption, PasswordOption, RedisOption, UserOption, settings_of
from shardqa.extras import need


def mcp(
    corpus: CorpusOption = None,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout: the tools ask, search, list and fetch.

    An assistant starts it; docs/client-mcp.md shows the configuration.

    Example: shardqa mcp --corpus handbook
    """
    need("mcp", package="shardqa[mcp]")
    from shardqa.integrations.mcp_server import server

    server(settings_of(redis, user, password, corpus=corpus)).run("stdio")
