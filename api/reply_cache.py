"""Cached replies: a route that sends a reply kept as bytes, past FastAPI's parsing and the engine.

Parsing and writing JSON cost forty times what finding the answer does. What is not plain here (another type, a
field at fault, a parameter more, an answer that is not kept) goes on to the route, which does everything and says every
fault, so that there is one description of what is taken.
"""

from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from shardqa.api import streaming
from shardqa.api.authorized_engine import AuthorizedEngine
from shardqa.api.gate import Route
from shardqa.api.limits import replayed
from shardqa.api.state import State
from shardqa.errors import ShardqaError
from shardqa.http_schema import Question

PATH = "/v1/ask"
JSON = b"application/json"
WORDS, NUMBERS = frozenset({"q", "corpus"}), frozenset({"k", "n_best"})  # parameters of GET
DIGITS = 4  # of a number that may be within its bounds


class CachedRoute(Route):
    async def admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.path != PATH or streaming.wanted(scope):
            await super().admitted(scope, receive, send)
            return
        state = scope["app"].state.shardqa
        if scope["method"] == "POST":
            message = await receive()
            reply = _cached(state, _of_body(scope, message))
            receive = replayed(message, receive)
        else:
            reply = _cached(state, _of_query(scope["query_string"]))
        if reply is None:
            await super().admitted(scope, receive, send)
            return
        headers = [(b"content-type", JSON), (b"content-length", b"%d" % len(reply))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": reply})


def _cached(state: State, question: Question | None) -> bytes | None:
    engine = state.connection.connected
    if question is None or question.fresh or engine is None:
        return None
    try:
        reply = AuthorizedEngine(engine).cached_reply(question)
    except ShardqaError:
        return None  # the route says it
    if reply is None:
        return None
    state.metrics.observe_cached(reply.milliseconds, reply.no_answer)
    return reply.json


def _of_body(scope: Scope, message: Message) -> Question | None:
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    if types != [JSON] or scope["query_string"] or message["type"] != "http.request" or message.get("more_body"):
        return None
    try:
        return Question.model_validate_json(message["body"])
    except ValidationError:
        return None


def _of_query(query: bytes) -> Question | None:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=8)
    except ValueError:
        return None
    parameters = dict(pairs)
    numbers = {name: value for name, value in parameters.items() if name in NUMBERS}
    is_plain = len(parameters) == len(pairs) and "q" in parameters and parameters.keys() <= WORDS | NUMBERS
    if not is_plain or not all(v.isascii() and v.isdigit() and len(v) < DIGITS for v in numbers.values()):
        return None
    counts = {name: int(value) for name, value in numbers.items()}
    return Question(question=parameters["q"], corpus=parameters.get("corpus"), **counts)  # type: ignore[arg-type]
