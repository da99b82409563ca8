"""A LangChain retriever over shardqa's ranked passages. Needs langchain-core."""

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from shardqa.client import AsyncClient, Client
from shardqa.client.calls import DEFAULT_URL
from shardqa.integrations.metadata import metadata_of
from shardqa.schema import SearchResult


class ShardqaRetriever(BaseRetriever):
    """Passages of a corpus for a query, best first; each with its document, place and score as metadata."""

    url: str = DEFAULT_URL
    key: str | None = None
    corpus: str | None = None
    k: int = 4

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        with Client(self.url, self.key) as client:
            return _documents(client.search(query, self.corpus, k or self.k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        async with AsyncClient(self.url, self.key) as client:
            return _documents(await client.search(query, self.corpus, k or self.k))


def _documents(result: SearchResult) -> list[Document]:
    return [Document(page_content=one.text, id=one.key, metadata=metadata_of(one)) for one in result.passages]
