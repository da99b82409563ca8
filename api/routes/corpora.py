"""GET /v1/corpora: what can be asked."""

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel

from shardqa.answer import CorpusInfo
from shardqa.api.state import Shared

router = APIRouter(prefix="/v1", tags=["documents"])


class Corpora(BaseModel):
    default: str  # asked when a request names none; it may not exist yet
    corpora: list[CorpusInfo]


@router.get("/corpora", response_model=Corpora, summary="List the corpora")
async def get_corpora(state: Shared) -> Response:
    """Every corpus with its sizes; `epoch` changes whenever the corpus does."""
    corpora = Corpora(default=state.settings.corpus, corpora=await state.engine.corpora())
    return Response(corpora.model_dump_json(), media_type="application/json")
