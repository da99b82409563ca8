"""`shardqa mcp`: the documents as tools of an assistant that speaks the Model Context Protocol."""

from typing import Annotated

import typer

from shardqa.cli.options import CorpusOption, Target, on_cluster
from shardqa.extras import need


@on_cluster
def mcp(
    target: Target,
    corpus: CorpusOption = None,
    port: Annotated[
        int | None, typer.Option("--http", metavar="PORT", help="Over HTTP at http://127.0.0.1:PORT/mcp.")
    ] = None,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout, or over HTTP: the tools ask, search, list and fetch.

    An assistant starts it; docs/client-mcp.md shows the configuration.

    Example: shardqa mcp --corpus handbook
    """
    need("mcp", package=".[mcp]")
    from shardqa.integrations.mcp_server import server

    serving = server(target.settings(corpus=corpus))
    if port is None:
        serving.run("stdio")
    else:
        serving.run("streamable-http", host="127.0.0.1", port=port, stateless_http=True)
