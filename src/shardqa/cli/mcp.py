"""`shardqa mcp`: the documents as tools of an assistant that speaks the Model Context Protocol."""

from typing import Annotated

import typer

from shardqa.cli.options import CorpusOption, Target, on_cluster
from shardqa.extras import need


@on_cluster
def mcp(
    target: Target,
    corpus: CorpusOption = None,
    http: Annotated[int | None, typer.Option("--http", metavar="PORT", help="At http://127.0.0.1:PORT/mcp.")] = None,
) -> None:
    """Serve the Model Context Protocol on stdin and stdout, or over HTTP: the tools ask, search, list_corpora,
    list_documents, fetch.

    An assistant starts it: {"command": "shardqa", "args": ["mcp", "--corpus", "handbook"]} in its settings.

    Example: shardqa mcp --corpus handbook
    """
    need("mcp", extra="mcp")
    from shardqa.integrations.mcp_server import server

    serving = server(target.settings(corpus=corpus))
    if http is None:
        serving.run("stdio")
    else:
        serving.run("streamable-http", host="127.0.0.1", port=http, stateless_http=True)
