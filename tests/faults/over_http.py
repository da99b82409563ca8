"""An API as clients of a workload use it: of this version or an earlier one, so only by what both say."""

from dataclasses import dataclass
from typing import Any, Self

import httpx

from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable, ShardqaError, UnknownCorpus, UnknownDocument
from shardqa.schema import Answer, Document
from tests.faults.history import Span

PASSING_CODES = {"timeout", "cluster_unavailable", "writes_refused", "wrong_shard", "indexing"}


@dataclass(frozen=True, slots=True)
class AnswerView:
    """The part of an answer that a workload looks at."""

    spans: tuple[Span, ...]
    partial: bool
    cached: bool


def spans_of(answer: Answer) -> tuple[Span, ...]:
    return tuple(Span(found.document, found.start, found.end, found.answer) for found in answer.n_best)


async def view_by(engine: Engine, question: str, fresh: bool) -> AnswerView:
    answer = await engine.ask(question, fresh=fresh, n_best=20)
    return AnswerView(spans_of(answer), answer.partial, bool(answer.cached))


class OverHttp:
    """Raises the faults that the API tells."""

    def __init__(self, url: str, corpus: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=90)
        self._corpus = corpus

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, question: str, fresh: bool) -> AnswerView:
        words = {"question": question, "corpus": self._corpus, "fresh": fresh, "n_best": 20}
        reply = await self._send("POST", "/v1/ask", words)
        spans = (Span(item["document"], item["start"], item["end"], item["answer"]) for item in reply["n_best"])
        return AnswerView(tuple(spans), reply["partial"], bool(reply["cached"]))

    async def put(self, document: Document) -> None:
        words = {"id": document.id, "corpus": self._corpus, "title": document.title, "text": document.text}
        await self._send("POST", "/v1/documents", words)

    async def delete(self, corpus: str, name: str) -> bool:
        try:
            await self._send("DELETE", f"/v1/documents/{name}?corpus={corpus}", None)
        except UnknownDocument:
            return False
        return True

    async def _send(self, method: str, path: str, words: dict[str, Any] | None) -> Any:
        try:
            reply = await self._client.request(method, path, json=words)
        except httpx.HTTPError as error:
            raise ShardqaError(f"the API did not reply: {error!r}") from error
        if reply.status_code < 300:
            return reply.json() if reply.content else None
        raise _fault(reply.json(), reply.status_code)


def _fault(problem: dict[str, Any], status: int) -> ShardqaError:
    code = problem.get("code")
    for known in (UnknownCorpus, UnknownDocument):
        if code == known.code:
            return known(str(problem))
    if code not in PASSING_CODES:
        return ShardqaError(f"{status} {problem}")
    fault = ClusterUnavailable(str(problem))
    fault.code = code  # type: ignore[misc]
    return fault
