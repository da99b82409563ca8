"""To a key with a filter, a corpus is as if the documents that it hides were not there."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from shardqa.filters import DocumentFilter
from tests.api.conftest import KeyOf, Server, bearer, problem

QUESTION = "Who built the mill of Alma Reyes?"
SHOWN = [
    {"id": f"shown{n}", "title": title, "text": text, "metadata": {"year": 1901}}
    for n, (title, text) in enumerate(
        [
            ("Alma Reyes", "Alma Reyes was a miller. The mill was built by Bob Holm, the carpenter of Ulmen."),
            ("Bob Holm", "Bob Holm built mills and weirs on the river Orla, and Eva Lund helped him."),
            ("Eva Lund", "Eva Lund drew the plans. Nobody paid her."),
        ]
    )
]
HIDDEN = [
    {"id": f"hidden{n}", "title": title, "text": text * 3, "metadata": {"year": 1871}}
    for n, (title, text) in enumerate(
        [("Ada Holm", "The mill of Alma Reyes was built by Ada Holm. "), ("Eva Lund", "Reyes built mills. Bob Holm. ")]
        * 6
    )
]
# of this very request, or of a state that others change too
OWN = {"timing", "us", "key", "epoch", "cached", "cache", "instance"}


@pytest.fixture(scope="module")
def corpus(root: httpx.Client) -> str:
    """One of shown and hidden documents, beside its twin of shown ones, and one of hidden ones."""
    corpus = f"hidden-{time.monotonic_ns() % 10**9}"
    for name, documents in {corpus: [*HIDDEN, *SHOWN], twin(corpus): SHOWN, f"{corpus}-dark": HIDDEN}.items():
        assert root.post("/v1/documents", params={"corpus": name}, json=documents).json()["refused"] == 0
    return corpus


@pytest.fixture(scope="module")
def asker(locked: Server, corpus: str, key_of: KeyOf) -> Iterator[httpx.Client]:
    """Whoever has a key for these corpora, and for one that is not there, without their hidden documents."""
    corpora = [corpus, twin(corpus), f"{corpus}-dark", f"{corpus}-none"]
    shown = DocumentFilter(metadata={"year": {"gte": 1900}})
    key = key_of(scopes=["ask", "metrics"], corpora=corpora, filter=shown)
    with locked.client(headers=bearer(key)) as client:
        yield client


def twin(corpus: str) -> str:
    return f"{corpus}-twin"


def alike(value: Any) -> Any:
    """Without what belongs to the request alone."""
    if isinstance(value, dict):
        return {name: alike(one) for name, one in value.items() if name not in OWN}
    return [alike(one) for one in value] if isinstance(value, list) else value


def reply_of(client: httpx.Client, path: str, corpus: str, **more: str) -> Any:
    params = {} if "CORPUS" in path else {"corpus": corpus, **more}
    reply = client.get(path.replace("CORPUS", corpus), params=params)
    return reply.status_code, alike(json.loads(reply.text.replace(corpus, "CORPUS")))


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/ask", {"q": QUESTION}),
        ("/v1/ask", {"q": QUESTION, "n_best": "20", "k": "50"}),
        ("/v1/ask", {"q": "Who is Ada?"}),
        ("/v1/search", {"q": QUESTION, "limit": "100"}),
        ("/v1/search", {"q": "built"}),
        ("/v1/explain", {"q": QUESTION, "k": "50"}),
        ("/v1/documents", {"limit": "100"}),
        ("/v1/documents/hidden0", {}),
        ("/v1/documents/nobody", {}),
        ("/v1/corpora/CORPUS", {}),
        ("/v1/corpora/CORPUS/suggestions", {}),
    ],
)
def test_a_reply_is_that_of_a_corpus_without_the_hidden_documents(
    asker: httpx.Client, corpus: str, path: str, more: dict[str, str]
) -> None:
    assert reply_of(asker, path, corpus, **more) == reply_of(asker, path, twin(corpus), **more)


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/explain"])
def test_no_cache_tells_of_a_hidden_write(asker: httpx.Client, corpus: str, path: str) -> None:
    for _ in range(2):
        found = asker.get(path, params={"q": "Who drew the plans?", "corpus": corpus}).json()
        answer = found.get("answer") if path == "/v1/explain" else found
        assert (answer["cached"], answer["cache"]) == (False, None)
        assert not any(shard["cached"] or shard["us"] for shard in answer["shards"])


@pytest.mark.parametrize(
    "path", ["/v1/ask?q=mill&corpus=", "/v1/search?q=mill&corpus=", "/v1/explain?q=mill&corpus=",
             "/v1/documents?corpus=", "/v1/corpora/"]
)  # fmt: skip
def test_a_corpus_of_hidden_documents_alone_is_none(asker: httpx.Client, corpus: str, path: str) -> None:
    dark, none = (asker.get(f"{path}{corpus}-{name}") for name in ("dark", "none"))
    listed = [one["name"] for one in asker.get("/v1/corpora").json()["corpora"]]
    assert dark.status_code == none.status_code == 404
    assert dark.json()["detail"].replace("-dark", "-none") == none.json()["detail"]
    assert listed == [corpus, twin(corpus)]


def test_a_list_tells_no_hidden_document_by_its_pages(asker: httpx.Client, corpus: str) -> None:
    pages, cursor = list[list[str]](), None
    for _ in range(9):
        where = {"corpus": corpus, "limit": "1", **({"cursor": cursor} if cursor else {})}
        page = asker.get("/v1/documents", params=where).json()
        pages.append([one["id"] for one in page["documents"]])
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(pages) == [["shown0"], ["shown1"], ["shown2"]]


def test_a_cursor_of_any_document_leads_to_none_that_is_hidden(
    root: httpx.Client, asker: httpx.Client, corpus: str
) -> None:
    every, cursor = list[str | None]([None]), None
    while cursor := root.get("/v1/documents", params=_page(corpus, cursor)).json()["cursor"]:
        every.append(cursor)
    lists = [asker.get("/v1/documents", params={**_page(corpus, one), "limit": "9"}).json() for one in every]
    assert {one["id"] for found in lists for one in found["documents"]} == {"shown0", "shown1", "shown2"}


def _page(corpus: str, cursor: str | None) -> dict[str, str]:
    return {"corpus": corpus, "limit": "1", **({"cursor": cursor} if cursor else {})}


@pytest.mark.parametrize("wrong", ["", "é", "A" * 400, "YjAwMDE6b25l"])
def test_what_is_no_cursor_is_refused(asker: httpx.Client, corpus: str, wrong: str) -> None:
    problem(asker.get("/v1/documents", params={"corpus": corpus, "cursor": wrong}), 422, "bad_cursor")


def test_neither_times_of_shards_nor_epochs_are_told(asker: httpx.Client, corpus: str) -> None:
    for fresh in ("true", "false", "false"):  # computed, kept in Redis or this process, and as kept bytes
        answer = asker.get("/v1/ask", params={"q": QUESTION, "corpus": corpus, "fresh": fresh}).json()
        assert {(one["key"], len(one["us"])) for one in answer["shards"]} == {("", 0)}
        assert [answer["timing"][name] for name in ("terms", "rank", "read")] == [0, 0, 0]
    assert {one["epoch"] for one in asker.get("/v1/corpora").json()["corpora"]} == {""}


def test_metrics_and_cluster_tell_of_the_keys_own_corpora_alone(
    locked: Server, root: httpx.Client, asker: httpx.Client, corpus: str, key_of: KeyOf
) -> None:
    every = root.get("/metrics").text
    assert f'corpus="{corpus}"' in every
    assert "shardqa_http_requests_total" in every
    with locked.client(headers=bearer(key_of(scopes=["metrics"], corpora=[twin(corpus)]))) as client:
        text = client.get("/metrics").text
        assert [line for line in text.splitlines() if "documents{" in line] == [
            f'shardqa_corpus_documents{{corpus="{twin(corpus)}"}} 3.0'
        ]
        assert "shardqa_http" not in text
        assert sum(node["documents"] for node in client.get("/v1/cluster").json()["nodes"]) == 3
    text = asker.get("/metrics").text
    assert f'shardqa_corpus_documents{{corpus="{corpus}"}} 3.0' in text
    assert f"{corpus}-dark" not in text
    assert sum(node["passages"] for node in asker.get("/v1/cluster").json()["nodes"]) == 6
