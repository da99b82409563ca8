"""/v1/search: passages, unread; /v1/explain: what an answer was made of."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from shardqa import filters
from shardqa.api.gate import Route, operation
from shardqa.api.requests import JSON, as_json, until_disconnect
from shardqa.api.state import Shared
from shardqa.checks import MAX_K
from shardqa.http_schema import Explain, Search
from shardqa.schema import Explanation, SearchResult

router = APIRouter(prefix="/v1", tags=["questions"], route_class=Route)

Words = Annotated[str, Query(description="A question or words.")]
Conditions = Annotated[str | None, Query(description="Documents that may be found, as the JSON of a DocumentFilter.")]
Where = Annotated[str | None, Query(description="Where to look; several with commas, * for all; else yours.")]


@router.get("/search", **operation("ask", "Search passages by address", SearchResult))
async def get_search(
    request: Request,
    state: Shared,
    q: Words,
    corpus: Where = None,
    limit: Annotated[int, Query(description="Passages, 1 to 100.")] = 10,
    filter: Conditions = None,
) -> Response:
    """Searches as POST /v1/search does."""
    search = Search(question=q, corpus=corpus, limit=limit, filter=filters.of_text(filter))
    return await post_search(search, request, state)


@router.post("/search", **operation("ask", "Search passages", SearchResult, takes=(JSON,)))
async def post_search(search: Search, request: Request, state: Shared) -> Response:
    """The passages that rank best, unread. `highlights` are the question's words in the document, exact in characters.

    This is the ranking that questions are answered from.
    """
    return as_json(await until_disconnect(request, state.engine.search(search)))


@router.get("/explain", **operation("ask", "Explain an answer by address", Explanation))
async def get_explain(
    request: Request,
    state: Shared,
    q: Words,
    corpus: Where = None,
    k: Annotated[int | None, Query(description=f"Passages ranked, 1 to {MAX_K}.")] = None,
    filter: Conditions = None,
) -> Response:
    """Explains as POST /v1/explain does."""
    question = Explain(question=q, corpus=corpus, k=k, filter=filters.of_text(filter))
    return await post_explain(question, request, state)


@router.post("/explain", **operation("ask", "Explain an answer", Explanation, takes=(JSON,)))
async def post_explain(question: Explain, request: Request, state: Shared) -> Response:
    """The answer with all that it was made of: terms, ranks, the graph, spans with their logits, the score's parts."""
    return as_json(await until_disconnect(request, state.engine.explain(question)))
