"""Folders and tags: counted before a question, asked alone, and changed without the text being sent again."""

import httpx
import pytest

from shardqa.filters import DocumentFilter
from tests.api.conftest import KeyOf, Server, bearer, problem

DOCUMENTS = [
    {"id": "leave", "source": "/srv/hr/leave.md", "metadata": {"tags": ["staff", "rules"]}, "text": "Eva gives leave."},
    {"id": "pay", "source": "/srv/hr/pay/2026.md", "metadata": {"tags": "staff"}, "text": "Bob Holm grants pay."},
    {"id": "weir", "source": "https://orla.example/weir", "metadata": {"year": 1901}, "text": "Ada Holm grants water."},
]  # fmt: skip
WHO = "Who grants pay, water or leave?"


@pytest.fixture
def folders(http: httpx.Client, corpus: str) -> str:
    assert http.post("/v1/documents", params={"corpus": corpus}, json=DOCUMENTS).json()["refused"] == 0
    return corpus


def counts(client: httpx.Client, corpus: str) -> tuple[int, dict[str, int], dict[str, int]]:
    facets = client.get(f"/v1/corpora/{corpus}/facets").json()
    folders, tags = ({one["name"]: one["documents"] for one in facets[kind]} for kind in ("folders", "tags"))
    return facets["documents"], folders, tags


def found(client: httpx.Client, corpus: str, **filter_: object) -> list[str]:
    body = {"question": WHO, "corpus": corpus, "filter": filter_}
    return sorted(one["document"] for one in client.post("/v1/search", json=body).json()["passages"])


def test_folders_and_tags_are_counted_most_first(http: httpx.Client, folders: str) -> None:
    folder_counts = {"/srv/": 2, "/srv/hr/": 2, "/srv/hr/pay/": 1, "https://orla.example/": 1}
    assert counts(http, folders) == (3, folder_counts, {"staff": 2, "rules": 1})
    problem(http.get(f"/v1/corpora/{folders}-none/facets"), 404, "unknown_corpus")


def test_a_folder_or_several_are_asked_alone(http: httpx.Client, folders: str) -> None:
    assert found(http, folders, source="/srv/hr/") == ["leave", "pay"]
    assert found(http, folders, source=["/srv/hr/pay", "https://"], metadata={"tags": "staff"}) == ["pay"]
    answer = http.get("/v1/ask", params={"q": WHO, "corpus": folders, "filter": '{"source": "/srv/hr/pay/"}'}).json()
    assert {one["document"] for one in answer["n_best"]} == {"pay"}


def test_a_key_counts_what_it_sees(locked: Server, root: httpx.Client, key_of: KeyOf, corpus: str) -> None:
    root.post("/v1/documents", params={"corpus": corpus}, json=DOCUMENTS)
    key = key_of(scopes=["ask"], filter=DocumentFilter(source="/srv/hr/pay"))
    with locked.client(headers=bearer(key)) as asker:
        assert counts(asker, corpus) == (1, {"/srv/": 1, "/srv/hr/": 1, "/srv/hr/pay/": 1}, {"staff": 1})
        assert [one["id"] for one in asker.get("/v1/documents", params={"corpus": corpus}).json()["documents"]] == [
            "pay"
        ]
        problem(asker.get("/v1/documents/leave", params={"corpus": corpus}), 404, "unknown_document")


def test_metadata_and_source_change_without_the_text(http: httpx.Client, folders: str) -> None:
    where = {"corpus": folders}
    changes = {"source": "/srv/water/weir.md", "metadata": {"year": None, "tags": ["rules"]}}
    assert http.patch("/v1/documents/weir", params=where, json=changes).json()["changed"]
    stored = http.get("/v1/documents/weir", params=where).json()
    assert (stored["text"], stored["metadata"]) == ("Ada Holm grants water.", {"tags": ["rules"]})
    assert found(http, folders, source="/srv/water/") == ["weir"]
    assert counts(http, folders)[2] == {"staff": 2, "rules": 2}
    assert not http.patch("/v1/documents/weir", params=where, json=changes).json()["changed"]
    problem(http.patch("/v1/documents/nobody", params=where, json=changes), 404, "unknown_document")
    problem(http.patch("/v1/documents/weir", params=where, json={"text": "Another."}), 422, "invalid_request")


def test_a_change_of_a_document_that_another_has_changed_is_refused(http: httpx.Client, folders: str) -> None:
    where, path = {"corpus": folders}, "/v1/documents/weir"
    tag = {"if-match": http.get(path, params=where).headers["etag"]}
    assert http.patch(path, params=where, json={"title": "The weir"}, headers=tag).status_code == 200
    problem(http.patch(path, params=where, json={"title": "A weir"}, headers=tag), 412, "document_changed")
    assert http.get(path, params=where).json()["title"] == "The weir"
