"""GET /v1/corpora: what can be asked."""

from fastapi import APIRouter
from fastapi.responses import Response

from shardqa.api.state import Shared
from shardqa.http_schema import Listed

router = APIRouter(prefix="/v1", tags=["documents"])


@router.get("/corpora", response_model=Listed, summary="List the corpora")
async def get_corpora(state: Shared) -> Response:
    """Every corpus with its sizes; `epoch` changes whenever the corpus does."""
    found = await state.engine.corpora()
    listed = Listed(default=state.settings.corpus, **dict(found))
    return Response(listed.model_dump_json(), media_type="application/json")
