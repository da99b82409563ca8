"""/v1/chat/completions and /v1/models in the shape of OpenAI's: a model is a corpus, and every word is a document's.

Behind the switch `openai` of SHARDQA_HTTP_OPENINGS. The last message of the user is the question. The content is the
sentences that hold the answer, or those that come nearest; each is cited by an annotation. Nothing is generated.
"""

import json
import time
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel

from shardqa.api import problems, streaming
from shardqa.api.gate import Route, operation
from shardqa.api.requests import JSON, until_disconnect
from shardqa.api.state import Shared
from shardqa.http_schema import Question
from shardqa.schema import Answer

NOTHING = "No answer was found in the documents."

router = APIRouter(prefix="/v1", tags=["openings"], route_class=Route)


class ContentPart(BaseModel):
    type: str
    text: str = ""


class ChatMessage(BaseModel):
    role: str
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content if part.type in ("text", "input_text"))
        return self.content or ""


class ChatRequest(BaseModel):
    """The fields of a chat request that have an effect here; clients send many more."""

    model: str
    messages: list[ChatMessage]
    stream: bool = False


@router.get("/models", **operation("ask", "The corpora as models"))
async def get_models(state: Shared) -> dict[str, Any]:
    corpora = await state.engine.corpora()
    data = [{"id": one.name, "object": "model", "created": 0, "owned_by": "shardqa"} for one in corpora.corpora]
    return {"object": "list", "data": data}


@router.post("/chat/completions", **operation("ask", "Ask as a chat", takes=(JSON,)))
async def post_completions(chat: ChatRequest, request: Request, state: Shared) -> Response:
    text = next((message.text for message in reversed(chat.messages) if message.role == "user"), "")
    question = Question(question=text.strip(), corpus=chat.model)
    answer = await until_disconnect(request, state.engine.ask(question))
    state.metrics.observe(answer)
    message = {"role": "assistant", **_message(answer)}
    chat_id = f"chatcmpl-{problems.request_id(request.scope)}"
    head = {"id": chat_id, "created": int(time.time()), "model": answer.corpus}
    if chat.stream:
        return Response(_events(head, message), media_type=streaming.EVENTS, headers=streaming.HEADERS)
    choice = {"index": 0, "message": {**message, "refusal": None}, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # no tokens are generated
    return Response(
        json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}, ensure_ascii=False),
        media_type=JSON,
    )


def _message(answer: Answer) -> dict[str, Any]:
    """Returns the message: the content, with an annotation for each stretch that says where it stands."""
    content, annotations = "", list[dict[str, Any]]()
    joint = "\n" if answer.form == "list" else " "
    for part in answer.parts:
        start = len(content) + bool(content)
        content = f"{content}{joint}{part.quote}" if content else part.quote
        address = f"/v1/documents/{quote(part.document, safe='')}?{urlencode({'corpus': part.corpus})}"
        title = part.title or part.document
        citation = {
            "start_index": start,
            "end_index": len(content),
            "url": address,
            "title": title if part.place is None else f"{title}, {part.place}",
        }
        annotations.append({"type": "url_citation", "url_citation": citation})
    if answer.no_answer and content:
        lead = "No sure answer. Nearest: "
        for one in annotations:
            for name in ("start_index", "end_index"):
                one["url_citation"][name] += len(lead)
        content = lead + content
    return {"content": content or NOTHING, "annotations": annotations}


def _events(head: dict[str, Any], message: dict[str, Any]) -> str:
    """Returns the whole answer as one delta of a stream: it is there at once."""
    deltas: list[tuple[dict[str, Any], str | None]] = [(message, None), ({}, "stop")]
    choices = ({"index": 0, "delta": delta, "logprobs": None, "finish_reason": end} for delta, end in deltas)
    chunks = ({**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices)
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
