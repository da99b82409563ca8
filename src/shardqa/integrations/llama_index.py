"""A LlamaIndex reader of a corpus' documents, and a retriever of its passages. Needs llama-index-core."""

from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from shardqa.client import Client
from shardqa.client.calls import DEFAULT_URL
from shardqa.integrations.metadata import metadata_of


class ShardqaCorpusReader(BaseReader):
    """Loads the documents of a corpus."""

    def __init__(self, url: str = DEFAULT_URL, key: str | None = None) -> None:
        self._url = url
        self._key = key

    def load_data(self, corpus: str | None = None) -> list[Document]:
        with Client(self._url, self._key) as client:
            whole = [client.document(one.id, corpus) for one in client.documents(corpus)]
        return [Document(text=one.text, id_=one.id, metadata={**one.metadata, "title": one.title}) for one in whole]


class ShardqaNodeRetriever(BaseRetriever):
    """Passages of a corpus for a query, best first."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str | None = None,
        corpus: str | None = None,
        similarity_top_k: int = 4,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._client = Client(url, key)
        self._corpus = corpus
        self._limit = similarity_top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = self._client.search(query_bundle.query_str, self._corpus, self._limit)
        return [
            NodeWithScore(
                node=TextNode(
                    text=one.text,
                    id_=one.key,
                    metadata=metadata_of(one),
                    start_char_idx=one.start,
                    end_char_idx=one.end,
                    relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=one.document)},
                ),
                score=one.score,
            )
            for one in result.passages
        ]
