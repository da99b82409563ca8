"""/retrieval as Dify asks an external knowledge base. Behind the switch `dify` of SHARDQA_HTTP_OPENINGS.

Dify wants scores from 0 to 1: a passage's is its share of the first one's.
"""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from shardqa.api.gate import Route, needs
from shardqa.api.requests import JSON, taking, until_disconnect
from shardqa.api.state import Shared
from shardqa.errors import BadFilter
from shardqa.http_schema import Search

router = APIRouter(tags=["openings"], route_class=Route)


class RetrievalSetting(BaseModel):
    top_k: int = 4
    score_threshold: float = 0.0


class Retrieval(BaseModel):
    knowledge_id: str  # the corpus
    query: str
    retrieval_setting: RetrievalSetting = Field(default_factory=RetrievalSetting)
    metadata_condition: dict[str, Any] | None = None


@router.post("/retrieval", summary="Passages for Dify", dependencies=[needs("ask"), taking(JSON)])
async def post_retrieval(retrieval: Retrieval, request: Request, state: Shared) -> dict[str, Any]:
    if (retrieval.metadata_condition or {}).get("conditions"):
        raise BadFilter("metadata_condition is not taken here; leave it out, or give the key a filter")
    setting = retrieval.retrieval_setting
    search = Search(question=retrieval.query, corpus=retrieval.knowledge_id, limit=setting.top_k)
    passages = (await until_disconnect(request, state.engine.search(search))).passages
    top = max((one.score for one in passages), default=0.0) or 1.0
    return {
        "records": [
            {
                "content": one.text,
                "score": round(one.score / top, 4),
                "title": one.title or one.document,
                "metadata": {
                    **one.metadata,
                    "document": one.document,
                    "start": one.start,
                    "end": one.end,
                    "place": str(one.place) if one.place is not None else "",
                },
            }
            for one in passages
            if one.score / top >= setting.score_threshold
        ]
    }
