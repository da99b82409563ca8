"""/v1/corpora/{corpus}/questions: what was asked of a corpus and refused, so that its owner sees what is missing.

Behind the switch `questions` of SHARDQA_HTTP_OPENINGS.
"""

from fastapi import APIRouter

from shardqa.api.gate import Route, operation
from shardqa.api.routes.corpora import Name
from shardqa.api.state import Shared
from shardqa.http_schema import AskedQuestions

router = APIRouter(prefix="/v1", tags=["openings"], route_class=Route)


@router.get("/corpora/{corpus}/questions", **operation("admin", "List what was asked of a corpus"))
async def get_questions(corpus: Name, state: Shared) -> AskedQuestions:
    """Each question once, as it went last; refused ones first. What a process still knew is not counted again."""
    return AskedQuestions(questions=await state.engine.asked(corpus))
