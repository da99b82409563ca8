"""The page docs/http.md has the numbers of the code, and every field of an answer."""

import re
from pathlib import Path

import httpx
import pytest

from shardqa.api import connection_limits, http_protocol, limits
from shardqa.api.routes import documents
from shardqa.api.routes.documents import MAX_DOCUMENTS
from shardqa.checks import MAX_DOCUMENT
from shardqa.config import Settings
from shardqa.files import reader_process
from shardqa.http_schema import MAX_QUESTIONS
from shardqa.schema import Answer
from tests.api.conftest import problem

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
KIB, MIB, GIB = 1024, 1024**2, 1024**3

# How a row of the table of bounds begins -> the numbers in it, in their order.
BOUNDS = {
    "requests that read or write documents": [Settings.model_fields["concurrency"].default],
    "connections of one process": [connection_limits.CONNECTIONS, connection_limits.PER_ADDRESS],
    "a request's head": [
        http_protocol.MAX_HEAD // KIB, http_protocol.MAX_HEADERS, http_protocol.MAX_URL // KIB,
        http_protocol.HEAD_SECONDS,
    ],
    "what stands between two parts of a body": [http_protocol.MAX_HEAD // KIB],
    "requests that wait on one connection": [http_protocol.PIPELINED],
    "body of `POST /v1/documents`": [limits.MAX_DOCUMENTS_BODY // MIB, MAX_DOCUMENT // 1_000_000, 512, 4_096, 4_000],
    "documents of one request": [MAX_DOCUMENTS],
    "questions of one batch": [MAX_QUESTIONS],
    "any other body": [limits.MAX_BODY // MIB],
    "reading one file": [reader_process.SECONDS, reader_process.MEMORY // GIB],
    "all bodies in memory": [limits.MAX_BODIES // MIB, limits.MAX_BODIES_OF_OWNER // MIB],
    "a body's pace": [limits.BODY_PAUSE, limits.BODY_SECONDS],
    "a client that does not read its reply": [limits.SEND_SECONDS],
}  # fmt: skip


@pytest.mark.parametrize("row", BOUNDS)
def test_a_bound_is_documented_as_it_is(row: str) -> None:
    (bound,) = re.findall(rf"^\| {re.escape(row)}[^|]*\| ([^|]*) \|", PAGE, re.MULTILINE)
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", bound)]
    assert numbers == [float(number) for number in BOUNDS[row]]


def test_the_page_names_every_field_of_an_answer() -> None:
    assert set(Answer.model_fields) <= set(re.findall(r'[`"](\w+)[`"]', PAGE))


def test_more_documents_than_one_request_may_have_are_refused(alone: httpx.Client) -> None:
    reply = alone.post("/v1/documents", json=[{}] * (documents.MAX_DOCUMENTS + 1))
    problem(reply, 422, "bad_limit")
    assert "| documents of one request | 10,000 | 422 |" in PAGE
