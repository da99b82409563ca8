"""Haystack 3.4: a reader in the shape of its ExtractiveReader, and a document store. Needs haystack-ai."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from haystack import Document, ExtractedAnswer, component, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils.filters import document_matches_filter

from shardqa.client import Client
from shardqa.client.calls import DEFAULT_URL
from shardqa.errors import UnknownCorpus, UnknownDocument
from shardqa.models.pipeline import QuestionAnswering, pipeline


@component
class ShardqaExtractiveReader:
    """Finds answers in documents with shardqa's own reader, in this process: no cluster, no torch."""

    def __init__(self, model: str | None = None, top_k: int = 20, no_answer: bool = True) -> None:
        self.model = model
        self.top_k = top_k
        self.no_answer = no_answer
        self._reader: QuestionAnswering | None = None

    def to_dict(self) -> dict[str, Any]:
        return dict(default_to_dict(self, model=self.model, top_k=self.top_k, no_answer=self.no_answer))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ShardqaExtractiveReader":
        reader: ShardqaExtractiveReader = default_from_dict(cls, data)
        return reader

    def warm_up(self) -> None:
        if self._reader is None:
            self._reader = pipeline(model=Path(self.model) if self.model else None)

    @component.output_types(answers=list[ExtractedAnswer])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        score_threshold: float | None = None,
        no_answer: bool | None = None,
    ) -> dict[str, list[ExtractedAnswer]]:
        self.warm_up()
        assert self._reader is not None
        full = [one for one in documents if one.content and one.content.strip()]
        answers = [answer for one in full for answer in self._of(query, one)]
        if no_answer if no_answer is not None else self.no_answer:
            unsaid = 1.0
            for answer in answers:
                unsaid *= 1 - min(answer.score, 1.0)
            answers.append(ExtractedAnswer(query=query, score=unsaid))
        answers.sort(key=lambda one: -one.score)
        fit = [one for one in answers if score_threshold is None or one.score >= score_threshold]
        return {"answers": fit[: top_k or self.top_k]}

    @component.output_types(answers=list[ExtractedAnswer])
    async def run_async(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        score_threshold: float | None = None,
        no_answer: bool | None = None,
    ) -> dict[str, list[ExtractedAnswer]]:
        return await asyncio.to_thread(self.run, query, documents, top_k, score_threshold, no_answer)

    def _of(self, query: str, document: Document) -> list[ExtractedAnswer]:
        """The best span of one document."""
        assert self._reader is not None
        result = self._reader(question=query, context=document.content, handle_impossible_answer=True, top_k=2)
        spans = result if isinstance(result, list) else [result]
        return [
            ExtractedAnswer(
                query=query,
                score=one["score"],
                data=one["answer"],
                document=document,
                document_offset=ExtractedAnswer.Span(one["start"], one["end"]),
            )
            for one in spans
            if one["answer"]
        ][:1]


class ShardqaDocumentStore:
    """A corpus as a Haystack document store, by the HTTP API. Filters are applied here, to what its list tells."""

    def __init__(self, url: str = DEFAULT_URL, corpus: str = "haystack", key: str | None = None) -> None:
        self.url = url
        self.corpus = corpus
        self._key = key
        self._client = Client(url, key)

    def to_dict(self) -> dict[str, Any]:
        return dict(default_to_dict(self, url=self.url, corpus=self.corpus))  # a key is no part of a pipeline's file

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ShardqaDocumentStore":
        store: ShardqaDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        return next((one.documents for one in self._client.corpora().corpora if one.name == self.corpus), 0)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Texts are fetched of those that the filters let through alone, unless they ask for words of it."""
        try:
            documents = [Document(id=one.id, meta=one.metadata) for one in self._client.documents(self.corpus)]
        except UnknownCorpus:
            return []
        if not filters:
            return self._read(documents)
        if _asks_for_text(filters):
            return [one for one in self._read(documents) if document_matches_filter(filters, one)]
        return self._read([one for one in documents if document_matches_filter(filters, one)])

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Returns how many were written. Raises DuplicateDocumentError by policy, ValueError for one without text."""
        if any(not one.content for one in documents):
            raise ValueError("shardqa keeps documents with text; one of these has none")
        if policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL, DuplicatePolicy.SKIP):
            there = [one for one in documents if self._has(one.id)]
            if there and policy != DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"{there[0].id!r} is in the corpus {self.corpus!r} already")
            documents = [one for one in documents if one not in there]
        rows = ({"id": one.id, "text": one.content, "metadata": one.meta} for one in documents)
        outcomes = self._client.add_many(rows, self.corpus)
        if outcomes.refused:
            problem = next(one.problem for one in outcomes.results if one.problem is not None)
            raise ValueError(f"{outcomes.refused} of {len(documents)} documents were refused: {problem.detail}")
        return outcomes.taken

    def delete_documents(self, document_ids: list[str]) -> None:
        for id_ in document_ids:
            try:
                self._client.delete(id_, self.corpus)
            except (UnknownCorpus, UnknownDocument):
                continue  # as other stores have it

    def _read(self, rows: list[Document]) -> list[Document]:
        """Fetches the texts, without those that are deleted meanwhile."""
        documents = list[Document]()
        for one in rows:
            with suppress(UnknownCorpus, UnknownDocument):
                whole = self._client.document(one.id, self.corpus)
                documents.append(Document(id=whole.id, content=whole.text, meta=whole.metadata))
        return documents

    def _has(self, id_: str) -> bool:
        try:
            self._client.document(id_, self.corpus)
        except (UnknownCorpus, UnknownDocument):
            return False
        return True


def _asks_for_text(filters: dict[str, Any]) -> bool:
    return filters.get("field") == "content" or any(map(_asks_for_text, filters.get("conditions", ())))
