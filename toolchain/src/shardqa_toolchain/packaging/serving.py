"""Handler of a serverless function: turns an event into a reply.

A question is ``{"question": text, "passage": text}`` or has ``"passages"``, a list of texts. The reply is ``{"answer",
"score", "start", "end", "no_answer"}``, and for a list ``"passage"``, the number of the one that answers. Whatever
else comes is told so, as ``{"error": {"code", "message"}}``.
"""

import base64
import binascii
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from shardqa.errors import BadData, ShardqaError
from shardqa_toolchain.packaging.answering import Answerer

Json = dict[str, Any]  # a JSON object
HEADERS = {"content-type": "application/json; charset=utf-8"}

FORM = '{"question": "...", "passage": "..."}'


class Server:
    """A reader's answers to events; may be called from several threads."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    def event(self, event: object) -> Json:
        """Reply to an event of AWS Lambda: the question itself, or an HTTP request of API Gateway or a function URL.

        An HTTP request gets ``{"statusCode", "headers", "body"}``.
        """
        if isinstance(event, dict) and ("body" in event or "requestContext" in event):
            status, reply = self._replied(lambda: self._asked(_parsed(_body(event))))
            return {"statusCode": status, "headers": HEADERS, "body": json.dumps(reply, ensure_ascii=False)}
        return self._replied(lambda: self._asked(event))[1]

    def http(self, method: str, body: bytes) -> tuple[int, Json]:
        """Reply to an HTTP request: its status and the JSON to send."""
        if method != "POST":
            message = f"{method} was sent; POST {FORM}"
            return HTTPStatus.METHOD_NOT_ALLOWED.value, {"error": {"code": "method_not_allowed", "message": message}}
        return self._replied(lambda: self._asked(_parsed(body)))

    def _replied(self, work: Callable[[], Json]) -> tuple[int, Json]:
        try:
            return HTTPStatus.OK.value, work()
        except ShardqaError as error:
            return error.status, {"error": {"code": error.code, "message": str(error)}}

    def _asked(self, event: object) -> Json:
        if not isinstance(event, dict):
            raise BadData(f"the event is {_kind(event)}, an object is needed, such as {FORM}")
        question = event.get("question")
        if not isinstance(question, str):
            raise BadData(f'"question" is {_kind(question)}, a string is needed; send {FORM}')
        passages = _passages(event)
        answer = self._answerer.answer(question, passages)
        reply: Json = {
            "answer": answer.text,
            "score": answer.score,
            "start": answer.start,
            "end": answer.end,
            "no_answer": answer.text is None,
        }
        return {**reply, "passage": answer.passage} if "passages" in event else reply


def _passages(event: Json) -> list[str]:
    if ("passage" in event) == ("passages" in event):
        raise BadData(f'either "passage" or "passages" is needed, not both; send {FORM}')
    texts = event["passages"] if "passages" in event else [event["passage"]]
    if not isinstance(texts, list):
        raise BadData(f'"passages" is {_kind(texts)}, a list of strings is needed')
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadData(f"passage {number} is {_kind(text)}, a string is needed")
    return texts


def _body(event: Json) -> bytes:
    body = event.get("body")
    if not isinstance(body, str):
        raise BadData(f"the request's body is {_kind(body)}, JSON is needed; POST {FORM}")
    try:
        return base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
    except (binascii.Error, ValueError) as error:
        raise BadData(f"the request's body can't be decoded: {error}; POST {FORM}") from None


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadData(f"the request's body is not JSON: {error}; POST {FORM}") from None


def _kind(value: object) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"
