"""/v1/ask: one question, one answer, or its steps as events; /v1/ask/batch: many at once."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from shardqa import filters
from shardqa.answer_forms import FormChoice
from shardqa.answer_lines import AnswerWhen
from shardqa.api import problems, streaming
from shardqa.api.gate import operation
from shardqa.api.reply_cache import CachedRoute
from shardqa.api.requests import JSON, as_json, until_disconnect
from shardqa.api.state import Shared, State
from shardqa.checks import MAX_K, MAX_N_BEST
from shardqa.http_schema import Answers, Asked, Question, Questions
from shardqa.schema import Answer, Step

QUESTIONS_AT_ONCE = 8  # questions of one batch on their way to shards
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with `Accept: text/event-stream` each step on the way to it as an event, too",
        "content": {streaming.EVENTS: {"schema": {"type": "string"}}},
    }
}

router = APIRouter(prefix="/v1", tags=["questions"], route_class=CachedRoute)


@router.post("/ask", responses=EVENTS, **operation("ask", "Ask a question", Answer, takes=(JSON,)))
async def post_ask(question: Question, request: Request, state: Shared) -> Response:
    """A span of a document, sentences of one, or a list. `text[start:end]` of each of `parts` is its text, counted in
    characters (code points).

    Where no answer is sure, `no_answer` is true and `answer` is null: `parts` are then the sentences that come nearest,
    and `n_best` the best guesses. Without parts the documents don't say.
    """
    if streaming.wanted(request.scope):
        return await _stream(question, request, state)
    return as_json(await until_disconnect(request, _answer(question, state)))


@router.get("/ask", responses=EVENTS, **operation("ask", "Ask a question by address", Answer))
async def get_ask(
    request: Request,
    state: Shared,
    q: Annotated[str, Query(description="One question, in plain words.")],
    corpus: Annotated[str | None, Query(description="Where to look; several with commas, * for all.")] = None,
    k: Annotated[int | None, Query(description=f"Passages read, 1 to {MAX_K}.")] = None,
    n_best: Annotated[int | None, Query(description=f"Candidates returned, 1 to {MAX_N_BEST}.")] = None,
    min_score: Annotated[float | None, Query(allow_inf_nan=False, description="0 to 1.")] = None,
    answer_when: Annotated[AnswerWhen | None, Query(description="How sure an answer must be.")] = None,
    form: Annotated[FormChoice | None, Query(description="A span, sentences, a list, or auto.")] = None,
    fresh: Annotated[bool, Query(description="Compute the answer anew.")] = False,
    filter: Annotated[str | None, Query(description="Which documents may answer, a DocumentFilter as JSON.")] = None,
) -> Response:
    """Answers as POST /v1/ask does, for a browser's address bar and for links."""
    question = Question(
        question=q,
        corpus=corpus,
        k=k,
        n_best=n_best,
        min_score=min_score,
        answer_when=answer_when,
        form=form,
        fresh=fresh,
        filter=filters.of_text(filter),
    )
    return await post_ask(question, request, state)


@router.post("/ask/batch", **operation("ask", "Ask many questions", Answers, takes=(JSON,)))
async def post_batch(batch: Questions, request: Request, state: Shared) -> Response:
    """Each has its own outcome, in the order of the request; one that fails does not harm the others."""
    return await until_disconnect(request, _ask_all(batch.questions, request, state))


async def _ask_all(questions: list[Question], request: Request, state: State) -> Response:
    places = asyncio.Semaphore(QUESTIONS_AT_ONCE)
    request_id = problems.request_id(request.scope)

    async def outcome(question: Question) -> Asked:
        try:
            async with places:
                answer = await _answer(question, state)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not take along the other answers
            problem = problems.explain(error, request_id)
            return Asked(status=problem.status, problem=problem)
        return Asked(status=200, answer=answer)

    results = await asyncio.gather(*(outcome(question) for question in questions))
    return as_json(Answers(results=results))


async def _answer(question: Question, state: State, on_step: Callable[[Step], None] | None = None) -> Answer:
    answer = await state.engine.ask(question, on_step)
    state.metrics.observe(answer)
    if "questions" in state.settings.openings:
        await state.engine.note_asked(answer)
    return answer


async def _stream(question: Question, request: Request, state: State) -> Response:
    """Sends events `step`, then `answer`; `problem` where the question fails after the first step."""
    request_id = problems.request_id(request.scope)
    return await streaming.steps(
        lambda on_step: _answer(question, state, on_step),
        lambda answer: streaming.event("answer", answer),
        lambda error: streaming.event("problem", problems.explain(error, request_id)),
    )
