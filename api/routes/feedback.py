"""/v1/feedback: what readers say of answers, kept for `shardqa-models eval --from-feedback`.

Behind the switch `feedback` of SHARDQA_HTTP_OPENINGS.
"""

from fastapi import APIRouter

from shardqa.api.gate import Route, operation
from shardqa.api.requests import JSON
from shardqa.api.state import Shared
from shardqa.http_schema import Feedback

router = APIRouter(prefix="/v1", tags=["openings"], route_class=Route)


@router.post("/feedback", status_code=204, **operation("ask", "Say what is right to answer", takes=(JSON,)))
async def post_feedback(feedback: Feedback, state: Shared) -> None:
    """Keeps a question with its right answers; without any, that the documents don't say."""
    await state.engine.note_feedback(state.corpus_of(feedback.corpus), feedback)
