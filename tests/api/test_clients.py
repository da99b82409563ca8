"""`shardqa.Client` and `shardqa.AsyncClient` against the real API, and against servers that fail."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

import shardqa
from shardqa import AsyncClient, Client
from shardqa.client import RequestFailed, Retries, Unreachable
from shardqa.client.calls import ask_batch, batches, search
from shardqa.errors import BadDocument, BadDocumentId, BadLimit, ShardqaError, UnknownCorpus, UnknownDocument
from shardqa.filters import DocumentFilter
from shardqa.http_schema import NewDocument, Question, Search
from tests.api.conftest import Serve, Server
from tests.nodes import free_port

MILL = "Ada Holm built the mill in 1871. It stands on the Oakline river."
QUICK = Retries(attempts=3, seconds=20)


@pytest.fixture
def client(api: Server) -> Iterator[Client]:
    with Client(api.url) as client:
        yield client


def test_documents_go_in_are_asked_and_go_out(client: Client, corpus: str) -> None:
    added = client.add(MILL, "mill", corpus, title="The mill", metadata={"year": 1871})
    assert (added.document, added.changed) == ("mill", True)
    assert not client.add(MILL, "mill", corpus, title="The mill", metadata={"year": 1871}).changed
    answer = client.ask("Who built the mill?", corpus)
    assert answer.answer == "Ada Holm"
    assert MILL[answer.start : answer.end] == answer.answer
    document = client.document("mill", corpus)
    assert (document.text, document.metadata) == (MILL, {"year": 1871})
    assert [one.documents for one in client.corpora().corpora if one.name == corpus] == [1]
    client.delete("mill", corpus)
    with pytest.raises(UnknownDocument) as caught:
        client.document("mill", corpus)
    assert caught.value.problem is not None
    assert caught.value.problem["status"] == 404


def test_many_documents_have_an_outcome_each(client: Client, corpus: str) -> None:
    sent = [NewDocument(text=f"Boat {n} is {n} metres long.", id=f"fleet/{n}") for n in range(1, 4)]
    outcomes = client.add_many([*sent, {"text": "", "id": "empty"}], corpus)
    assert (outcomes.taken, outcomes.refused) == (3, 1)
    problem = outcomes.results[-1].problem
    assert problem is not None
    assert problem.code == "bad_document"
    answers = [one.answer for one in client.ask_many(["How long is boat 2?", "How long is boat 3?"], corpus, k=3)]
    assert [answer[:1] if answer else answer for answer in answers] == ["2", "3"]


def test_a_filter_keeps_documents_out(client: Client, corpus: str) -> None:
    for year, name in ((1820, "Ada Holm"), (1907, "Jon Brenn")):
        client.add(f"{name} built the mill.", f"mill/{year}", corpus, metadata={"year": year, "end": None})
    late: dict[str, Any] = {"metadata": {"year": {"gte": 1900}}}
    question = "Who built the mill?"
    for filter in (late, DocumentFilter.model_validate(late)):
        assert client.ask(question, corpus, filter=filter).answer == "Jon Brenn"
        assert [one.document for one in client.search(question, corpus, filter=filter).passages] == ["mill/1907"]
        assert client.explain(question, corpus, filter=filter).answer.answer == "Jon Brenn"
    with pytest.raises(ShardqaError, match="filter"):
        client.ask(question, corpus, filter={"near": 1})


def test_a_filter_is_sent_as_it_was_given() -> None:
    conditions: dict[str, Any] = {"metadata": {"end": None, "year": [1820, None]}}
    for filter in (conditions, DocumentFilter.model_validate(conditions)):
        body = search(Search.model_construct(question="mill", limit=3), filter).json
        assert body is not None
        assert json.loads(body) == {"question": "mill", "limit": 3, "filter": conditions}
    asked = Question(question="mill?", filter=DocumentFilter.model_validate(conditions))
    batch = ask_batch([asked], "c").json
    assert batch is not None
    assert json.loads(batch)["questions"][0]["filter"] == conditions


def test_a_corpus_is_listed_searched_explained_and_dropped(client: Client, corpus: str) -> None:
    client.add_many([{"id": f"boat/{n}", "text": f"Boat {n} is {n} metres long."} for n in range(1, 8)], corpus)
    assert {one.id for one in client.documents(corpus, page=3)} == {f"boat/{n}" for n in range(1, 8)}
    found = client.search("boat 3", corpus, limit=2)
    assert found.passages[0].document == "boat/3"
    assert found.passages[0].highlights
    assert client.explain("How long is boat 3?", corpus).answer.document == "boat/3"
    asked = client.ask_batch(["How long is boat 3?", ""], corpus)
    assert [one.status for one in asked] == [200, 422]
    assert client.corpus(corpus).corpus is not None
    assert client.drop(corpus).documents == 7
    with pytest.raises(UnknownCorpus):
        client.ask("How long is boat 3?", corpus)


def test_a_file_is_put_as_it_is(client: Client, corpus: str, tmp_path: Path) -> None:
    file = tmp_path / "mill #1.html"
    file.write_text("<h1>Mill</h1><p>Ada Holm built it in 1871.</p>")
    assert client.add_file(file, corpus).documents[0].document == "mill #1.html"
    assert client.document("mill #1.html", corpus).text.startswith("Mill")
    assert ".html" in {suffix for one in client.formats().formats for suffix in one.suffixes}
    with pytest.raises(BadDocument, match="No such file"):
        client.add_file(tmp_path / "none.txt", corpus)


async def test_the_async_client_does_the_same(api: Server, corpus: str) -> None:
    async with AsyncClient(api.url) as client:
        await client.add(MILL, "mill", corpus, metadata={"year": 1871})
        assert (await client.add_many([{"text": "The weir is old.", "id": "weir"}], corpus)).taken == 1
        questions = ["Who built the mill?", "When was the mill built?"]
        assert [one.answer async for one in client.ask_many(questions, corpus)] == ["Ada Holm", "1871"]
        assert (await client.ready()).status == "ready"
        assert [one.id async for one in client.documents(corpus, page=1)]
        found = await client.search("mill", corpus, filter={"metadata": {"year": 1871}})
        assert [one.document for one in found.passages] == ["mill"]
        await client.delete("mill", corpus)
        with pytest.raises(UnknownDocument):
            await client.delete("mill", corpus)


def test_a_server_s_fault_is_raised_as_its_class(client: Client) -> None:
    with pytest.raises(UnknownCorpus, match="no corpus 'nowhere'"):
        client.ask("Who?", "nowhere")
    with pytest.raises(BadLimit, match="k=0"):
        client.ask("Who?", k=0)


def test_an_id_that_no_address_can_hold_is_told_before_it_is_sent(client: Client) -> None:
    for wrong in ("a/../b", ".", ""):
        with pytest.raises(BadDocumentId):
            client.document(wrong)


def test_nobody_there_is_told_with_the_address() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with Client(address, retries=Retries(attempts=2)) as client, pytest.raises(Unreachable, match=address):
        client.corpora()


def failing(replies: list[Response]) -> tuple[ASGIApp, list[str]]:
    """An app that gives one reply after the other, the last again and again, and the methods it was sent."""
    methods = list[str]()

    async def reply(request: Request) -> Response:
        methods.append(request.method)
        return replies[min(len(methods), len(replies)) - 1]

    return Starlette(routes=[Route("/{path:path}", reply, methods=["GET", "POST", "DELETE"])]), methods


BUSY = PlainTextResponse("busy", 503, {"Retry-After": "0"})
READY = JSONResponse({"status": "ready", "problems": []})


async def test_a_busy_server_is_asked_again(serve: Serve) -> None:
    app, seen = failing([BUSY, BUSY, READY])
    async with AsyncClient(serve(app).url, retries=QUICK) as client:
        assert (await client.ready()).status == "ready"
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("reply", "message", "status"),
    [(PlainTextResponse("teapot", 418), "418: teapot", 418), (PlainTextResponse("<html>", 200), "no Ready", 502)],
    ids=["a fault that does not pass", "another server"],
)
def test_what_does_not_pass_is_asked_once(serve: Serve, reply: Response, message: str, status: int) -> None:
    app, seen = failing([reply])
    with Client(serve(app).url, retries=QUICK) as client, pytest.raises(RequestFailed, match=message) as caught:
        client.ready()
    assert caught.value.status == status
    assert len(seen) == 1


def test_a_client_without_retries_left_adds_no_load(serve: Serve) -> None:
    app, methods = failing([BUSY])
    with Client(serve(app).url, retries=Retries(attempts=5, burst=1, share=0)) as client:
        for _ in range(3):
            with pytest.raises(RequestFailed):
                client.ready()
    assert len(methods) == 4  # one retry for all three


def test_a_document_that_an_attempt_before_deleted_is_deleted(serve: Serve) -> None:
    app, _ = failing([BUSY, PlainTextResponse("gone", 404)])
    with Client(serve(app).url, retries=QUICK) as client:
        client.delete("mill")


def test_a_key_goes_along(serve: Serve) -> None:
    async def echo(request: Request) -> Response:
        return JSONResponse({"status": "ready", "problems": [request.headers.get("authorization", "")]})

    with Client(serve(Starlette(routes=[Route("/readyz", echo)])).url, key="sq_1") as client:
        assert client.ready().problems == ["Bearer sq_1"]


def test_documents_are_sent_in_batches() -> None:
    many = list(batches({"text": "x", "id": str(n)} for n in range(2_001)))
    assert [batch.count(b'"id"') for batch in many] == [1_000, 1_000, 1]
    assert len(list(batches({"text": "y" * 10_000_000} for _ in range(3)))) == 3


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import shardqa", {"pydantic", "httpx2", "redis", "numpy", "typer"}),
        ("from shardqa import Client", {"fastapi", "redis", "numpy", "typer"}),
    ],
)
def test_importing_the_package_loads_nothing_else(statement: str, absent: set[str]) -> None:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not absent & set(done.stdout.split())


def test_what_the_package_publishes_is_there() -> None:
    assert all(getattr(shardqa, name) is not None for name in shardqa.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Cleint'"):
        _ = shardqa.Cleint
