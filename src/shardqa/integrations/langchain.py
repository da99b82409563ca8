"""A LangChain retriever over shardqa's ranked passages. Needs langchain-core."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from shardqa.client import AsyncClient, Client
from shardqa.client.calls import DEFAULT_URL
from shardqa.schema import FoundPassage, SearchResult


class ShardqaRetriever(BaseRetriever):
    """Passages of a corpus for a query, best first; each with its document, place and score as metadata."""

    url: str = DEFAULT_URL
    key: str | None = None
    corpus: str | None = None
    k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with Client(self.url, self.key) as client:
            return _documents(client.search(query, self.corpus, self.k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        async with AsyncClient(self.url, self.key) as client:
            return _documents(await client.search(query, self.corpus, self.k))


def _documents(result: SearchResult) -> list[Document]:
    return [Document(page_content=one.text, id=one.key, metadata=metadata_of(one)) for one in result.passages]


def metadata_of(passage: FoundPassage) -> dict[str, Any]:
    """The fields that frameworks keep beside a passage: the document's own metadata, and where it stands."""
    return {
        **passage.metadata,
        "source": passage.document,
        "title": passage.title,
        "start": passage.start,
        "end": passage.end,
        "place": str(passage.place) if passage.place is not None else "",
        "score": passage.score,
    }
