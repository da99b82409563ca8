"""`shardqa mcp`: the documents as tools of an assistant that speaks the Model Context Protocol."""

from shardqa.cli.options import CorpusOption, Target, on_cluster
from shardqa.extras import need


@on_cluster
def mcp(
    target: Target,
    corpus: CorpusOption = None,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout: the tools ask, search, list and fetch.

    An assistant starts it; docs/client-mcp.md shows the configuration.

    Example: shardqa mcp --corpus handbook
    """
    need("mcp", package=".[mcp]")
    from shardqa.integrations.mcp_server import server

    server(target.settings(corpus=corpus)).run("stdio")
