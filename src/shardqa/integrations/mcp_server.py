"""A server of the Model Context Protocol: tools that only read, and documents as resources. The extra `mcp`."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from mcp.server.mcpserver import MCPServer, ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import Resource, ToolAnnotations

import shardqa
from shardqa.answer_forms import FormChoice
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownDocument
from shardqa.schema import Answer, Corpora, Document, DocumentList, SearchResult

INSTRUCTIONS = (
    "Answers from the user's own documents, word for word: 'ask' gives a span, sentences or a list, as `form` says, "
    "with a calibrated score and the exact place of each of `parts`. Where none is sure, `answer` is null and `parts` "
    "are the sentences that come nearest: say that they are not sure. Cite document and place. 'search' ranks "
    "passages. Both take a `corpus`, several with commas, or * for all. "
    "'list_corpora' and 'list_documents' say what there is, 'fetch' reads a document whole."
)

MOST_RESOURCES = 1_000
READING = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
REMEDIES = {  # by the fault's code: ways out for an assistant, where the fault itself names none
    "several_corpora": "send `corpus` with the question",
    "unknown_corpus": "'list_corpora' names those there are",
    "unknown_document": "'list_documents' names those there are",
}

Result = TypeVar("Result")


@dataclass
class _Connected:
    engine: Engine | None = None

    def __call__(self) -> Engine:
        if self.engine is None:
            raise ClusterUnavailable("the server is not connected")
        return self.engine


async def _with_faults(work: Awaitable[Result], kind: type[Exception] = ToolError) -> Result:
    """A fault of a user as what the assistant reads; any other is a crash of the server."""
    try:
        return await work
    except ShardqaError as fault:
        raise kind("; ".join(filter(None, (str(fault), REMEDIES.get(fault.code))))) from fault


async def _document(engine: Engine, corpus: str | None, id: str) -> Document:
    """Raises UnknownDocument."""
    corpus = await engine.catalogue.one_asked(corpus)
    document = await engine.documents.get(corpus, id)
    if document is None:
        raise UnknownDocument(f"there is no document {id!r} in the corpus {corpus!r}")
    return document


async def _documents(engine: Engine, corpus: str | None, cursor: str | None, limit: int) -> DocumentList:
    return await engine.catalogue.documents(await engine.catalogue.one_asked(corpus), cursor, limit)


async def _resources(engine: Engine) -> list[Resource]:
    resources = list[Resource]()
    for corpus in (await engine.catalogue.corpora()).corpora:
        if len(resources) < MOST_RESOURCES:
            page = await engine.catalogue.documents(corpus.name, None, MOST_RESOURCES - len(resources))
            address = f"shardqa://{corpus.name}/"
            resources += [
                Resource(uri=address + quote(one.id, safe=""), name=one.id, title=one.title, mime_type="text/plain")
                for one in page.documents
            ]
    return resources


def server(settings: Settings) -> MCPServer:
    """A server that connects when it is run. Faults are tool results marked as errors, with their sentence."""
    engine = _Connected()

    @asynccontextmanager
    async def connected(_: MCPServer) -> AsyncIterator[None]:
        async with await Engine.connect(settings) as engine.engine:
            yield

    class Server(MCPServer):
        async def list_resources(self) -> list[Resource]:
            """The first documents of the corpora; `list_documents` lists any number."""
            return await _with_faults(_resources(engine()), ResourceError)

    mcp = Server(
        "shardqa", version=shardqa.__version__, instructions=INSTRUCTIONS, lifespan=connected, log_level="WARNING"
    )

    @mcp.tool(annotations=READING)
    async def ask(
        question: str, corpus: str | None = None, k: int | None = None, form: FormChoice | None = None
    ) -> Answer:
        """Answer one plain question from the documents of a corpus; null where none is sure: then see `parts`."""
        return await _with_faults(engine().ask(question, corpus=corpus, k=k, form=form))

    @mcp.tool(annotations=READING)
    async def search(question: str, corpus: str | None = None, limit: int = 10) -> SearchResult:
        """The passages that rank best for a question or for words, with the words marked."""
        return await _with_faults(engine().search(question, limit, corpus=corpus))

    @mcp.tool(annotations=READING)
    async def list_corpora() -> Corpora:
        """All corpora with their sizes."""
        return await _with_faults(engine().catalogue.corpora())

    @mcp.tool(annotations=READING)
    async def list_documents(corpus: str | None = None, cursor: str | None = None, limit: int = 100) -> DocumentList:
        """The documents of a corpus, a page at a time: send `cursor` of the page before."""
        return await _with_faults(_documents(engine(), corpus, cursor, limit))

    @mcp.tool(annotations=READING)
    async def fetch(id: str, corpus: str | None = None) -> Document:
        """A document whole; offsets of answers count the characters of its `text`."""
        return await _with_faults(_document(engine(), corpus, id))

    @mcp.resource("shardqa://{corpus}/{+id}", security=ResourceSecurity(exempt_params={"id"}), mime_type="text/plain")
    async def document(corpus: str, id: str) -> str:
        """The text of a document."""
        return (await _with_faults(_document(engine(), corpus, id), ResourceError)).text

    return mcp
