"""A corpus as a whole over HTTP: its documents page by page, its sizes, its end."""

import httpx

from tests.nodes import wait_until


def put(http: httpx.Client, corpus: str, count: int) -> None:
    sent = [{"id": f"n{n}", "text": f"Mill {n} is old.", "metadata": {"n": n}} for n in range(count)]
    assert http.post("/v1/documents", params={"corpus": corpus}, json=sent).json()["taken"] == count


def test_a_cursor_goes_through_all_documents(http: httpx.Client, corpus: str) -> None:
    put(http, corpus, 5)
    page = http.get("/v1/documents", params={"corpus": corpus, "limit": 3}).json()
    rest = http.get("/v1/documents", params={"corpus": corpus, "cursor": page["cursor"]}).json()
    listed = page["documents"] + rest["documents"]
    assert sorted(one["id"] for one in listed) == [f"n{n}" for n in range(5)]
    assert {one["id"]: one["metadata"] for one in listed}["n3"] == {"n": 3}
    assert (len(page["documents"]), rest["cursor"]) == (3, None)


def test_what_is_no_cursor_is_a_problem(http: httpx.Client, corpus: str) -> None:
    reply = http.get("/v1/documents", params={"corpus": corpus, "cursor": "x"})
    assert (reply.status_code, reply.json()["code"]) == (422, "bad_cursor")


def test_a_dropped_corpus_is_gone_for_questions_at_once_and_then_for_good(http: httpx.Client, corpus: str) -> None:
    put(http, corpus, 5)
    assert http.get(f"/v1/corpora/{corpus}").json()["corpus"]["documents"] == 5
    reply = http.delete(f"/v1/corpora/{corpus}")
    assert (reply.status_code, reply.json()["documents"]) == (202, 5)
    assert reply.headers["location"] == f"/v1/corpora/{corpus}"
    assert http.get("/v1/ask", params={"q": "Which mill?", "corpus": corpus}).json()["code"] == "unknown_corpus"
    wait_until(lambda: http.get(f"/v1/corpora/{corpus}").status_code == 404, "it is gone")
    assert http.delete(f"/v1/corpora/{corpus}").json()["code"] == "unknown_corpus"
    assert http.get("/v1/documents", params={"corpus": corpus}).json()["code"] == "unknown_corpus"
