"""POST and GET /v1/ask: one question, one answer."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from shardqa.answer_lines import AnswerWhen
from shardqa.api.leaving import unless_left
from shardqa.api.state import Shared, State, json_only
from shardqa.config import MAX_K, MAX_N_BEST
from shardqa.http_schema import Question
from shardqa.schema import Answer

router = APIRouter(prefix="/v1", tags=["questions"])


@router.post(
    "/ask",
    response_model=Answer,
    summary="Ask a question",
    dependencies=[Depends(json_only)],
)
async def post_ask(asked: Question, request: Request, state: Shared) -> Response:
    """The answer is a span of a document: `text[start:end] == answer`, counted in characters (code points).

    When the documents don't say, `no_answer` is true and `answer` is null; `n_best` still shows the best guesses.
    """
    return await _ask(asked, request, state)


@router.get("/ask", response_model=Answer, summary="Ask a question by address")
async def get_ask(
    request: Request,
    state: Shared,
    q: Annotated[str, Query(description="One question, in plain words.")],
    corpus: Annotated[str | None, Query(description="Where to look.")] = None,
    k: Annotated[int | None, Query(description=f"Passages read, 1 to {MAX_K}.")] = None,
    n_best: Annotated[int | None, Query(description=f"Candidates returned, 1 to {MAX_N_BEST}.")] = None,
    min_score: Annotated[float | None, Query(allow_inf_nan=False, description="0 to 1.")] = None,
    answer_when: Annotated[AnswerWhen | None, Query(description="How sure an answer must be.")] = None,
    fresh: Annotated[bool, Query(description="Compute the answer anew.")] = False,
) -> Response:
    """The same as POST /v1/ask, for a browser's address bar and for links."""
    asked = Question(
        question=q, corpus=corpus, k=k, n_best=n_best, min_score=min_score, answer_when=answer_when, fresh=fresh
    )
    return await _ask(asked, request, state)


async def _ask(asked: Question, request: Request, state: State) -> Response:
    work = state.engine.ask(
        asked.question, asked.corpus, asked.k, asked.n_best, asked.min_score, asked.fresh, asked.answer_when
    )
    answer = await unless_left(request, work)
    state.metrics.observe(answer)
    return Response(answer.model_dump_json(), media_type="application/json")
