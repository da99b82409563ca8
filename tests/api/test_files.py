"""Files as they are, read by their suffix as the command line reads them; many documents and files in one request."""

import io
import json
import zipfile
from collections.abc import Callable

import httpx
import pytest

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.files import formats
from tests.api.conftest import KeyOf, Server, bearer, cluster_client, problem
from tests.conftest import Output
from tests.unit.house import ROOT

PAGE = (
    b"<html><head><title>Mill</title><script>var x</script></head><body><h1>Mill</h1><p>Ada Holm built it in 1871.</p>"
)


def put(http: httpx.Client, corpus: str, name: str, content: bytes, **query: str) -> httpx.Response:
    return http.put(f"/v1/files/{name}", params={"corpus": corpus, **query}, content=content)


def test_a_page_is_read_as_a_page(http: httpx.Client, corpus: str) -> None:
    reply = put(http, corpus, "mill.html", PAGE)
    assert (reply.status_code, reply.json()["documents"][0]["document"]) == (201, "mill.html")
    stored = http.get("/v1/documents/mill.html", params={"corpus": corpus}).json()
    assert (stored["title"], stored["text"]) == ("Mill", "Mill\n\nAda Holm built it in 1871.")
    answer = http.get("/v1/ask", params={"q": "When was the mill built?", "corpus": corpus}).json()
    assert (answer["answer"], answer["place"]) == ("1871", {"headings": ["Mill"]})
    assert put(http, corpus, "mill.html", PAGE).status_code == 200


def test_a_file_is_kept_until_its_document_is_deleted_or_says_something_else(
    http: httpx.Client, corpus: str, cluster: LocalCluster
) -> None:
    put(http, corpus, "a/mill.html", PAGE)
    where = {"corpus": corpus}
    assert http.get("/v1/documents/a/mill.html", params=where).json()["has_file"]
    reply = http.get("/v1/files/a/mill.html", params=where)
    assert (reply.content, reply.headers["content-type"]) == (PAGE, "application/octet-stream")
    assert reply.headers["content-disposition"] == "attachment; filename*=UTF-8''mill.html"
    for address in ("/v1/files/a/mill.html", "/v1/documents/a/mill.html"):
        known = {"if-none-match": http.get(address, params=where).headers["etag"]}
        again = http.get(address, params=where, headers=known)
        assert (again.status_code, again.content, again.headers["cache-control"][:7]) == (304, b"", "private")
    problem(http.get("/v1/pages/a/mill.html", params={**where, "start": 0, "end": 4}), 404, "no_file")
    http.post("/v1/documents", json={"id": "a/mill.html", "corpus": corpus, "text": "Another mill."})
    assert not http.get("/v1/documents/a/mill.html", params=where).json()["has_file"]
    problem(http.get("/v1/files/a/mill.html", params=where), 404, "no_file")
    put(http, corpus, "a/mill.html", PAGE, replace="true")
    http.delete("/v1/documents/a/mill.html", params=where)
    problem(http.get("/v1/files/a/mill.html", params=where), 404, "unknown_document")
    with cluster_client(cluster) as client:
        assert not client.exists(keys.file(corpus, "a/mill.html"))


def test_an_archive_is_kept_until_one_of_its_documents_is_deleted_or_the_corpus_dropped(
    http: httpx.Client, corpus: str, cluster: LocalCluster
) -> None:
    rows, where = b"Boat,Hull\nPetrel,oak\nHeron,steel\n", {"corpus": corpus}
    for end in (f"/v1/documents/boats.csv/2?corpus={corpus}", f"/v1/corpora/{corpus}"):
        names = [one["document"] for one in put(http, corpus, "boats.csv", rows).json()["documents"]]
        assert [http.get(f"/v1/documents/{name}", params=where).json()["has_file"] for name in names] == [True, True]
        reply = http.get(f"/v1/files/{names[1]}", params=where)
        assert (reply.content, reply.headers["content-disposition"][-9:]) == (rows, "boats.csv")
        assert http.delete(end).is_success
        with cluster_client(cluster) as client:
            assert not client.exists(keys.file(corpus, "boats.csv"))
    with cluster_client(cluster) as client:
        assert not client.exists(keys.files(corpus))


def test_a_key_with_a_filter_gets_no_file_that_holds_other_documents(
    locked: Server, root: httpx.Client, key_of: KeyOf, corpus: str
) -> None:
    for name, content in (("a.txt", b"Ada Holm built it."), ("b.csv", b"Mill,Built\nUlmen,1820\nBrack,1632\n")):
        assert put(root, corpus, name, content).status_code == 201
    key = key_of(scopes=["ask"], corpora=[corpus], filter={"metadata": {"none": {"exists": False}}})
    with locked.client(headers=bearer(key)) as http:
        where = {"corpus": corpus}
        seen = [http.get(f"/v1/documents/{name}", params=where).json()["has_file"] for name in ("a.txt", "b.csv/2")]
        assert seen == [True, False]
        problem(http.get("/v1/files/b.csv/2", params=where), 404, "no_file")


def test_a_corpus_keeps_no_files_where_it_is_told_so(
    http: httpx.Client, corpus: str, cluster: LocalCluster, program: Callable[..., Output]
) -> None:
    put(http, corpus, "mill.txt", b"It was built in 1871.")
    words = ("corpus", "set", "keep_files=off", "--corpus", corpus, "--redis", cluster.seed(), "--json")
    assert program(*words).json == {"corpus": corpus, "keep_files": False}
    put(http, corpus, "weir.txt", b"The weir is new.")
    documents = [http.get(f"/v1/documents/{name}.txt", params={"corpus": corpus}).json() for name in ("mill", "weir")]
    assert [one["has_file"] for one in documents] == [True, False]


def test_the_page_of_a_pdf_is_a_picture_with_a_part_marked(http: httpx.Client, corpus: str) -> None:
    content = (ROOT / "tests" / "golden" / "pages.pdf").read_bytes()
    assert put(http, corpus, "pages.pdf", content).status_code == 201
    text = http.get("/v1/documents/pages.pdf", params={"corpus": corpus}).json()["text"]
    start = len(text) - 20
    reply = http.get("/v1/pages/pages.pdf", params={"corpus": corpus, "start": start, "end": start + 8})
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png"), reply.text
    assert reply.content.startswith(b"\x89PNG")


def test_another_text_of_the_same_name_replaces_the_upload_of_before(http: httpx.Client, corpus: str) -> None:
    put(http, corpus, "mill.txt", b"It was built in 1871.")
    assert put(http, corpus, "mill.txt", b"It was built in 1872.").status_code == 201
    http.post("/v1/documents", json={"id": "weir.txt", "corpus": corpus, "text": "The weir."})
    problem(put(http, corpus, "weir.txt", b"Another weir."), 409, "id_taken")
    assert put(http, corpus, "weir.txt", b"Another weir.", replace="true").status_code == 201


def test_what_is_left_out_of_an_archive_is_told(http: httpx.Client, corpus: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "The mill stands.")
        file.writestr("b.bin", b"\x00\x01")
    reply = put(http, corpus, "all.zip", archive.getvalue())
    assert reply.status_code == 207
    assert [one["document"] for one in reply.json()["documents"]] == ["all.zip/a.txt"]
    assert reply.json()["skipped"][0]["place"] == "all.zip/b.bin"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [("photo.png", b"x", "pictures hold no text"), ("empty.txt", b"", "no text"), ("torn.pdf", b"%PDF-", "not a PDF")],
)
def test_a_file_of_which_nothing_is_taken_is_a_problem(
    http: httpx.Client, corpus: str, name: str, content: bytes, why: str
) -> None:
    assert why in problem(put(http, corpus, name, content), 422, "bad_document")["detail"]


def test_the_formats_are_those_of_the_command_line(http: httpx.Client) -> None:
    found = http.get("/v1/formats").json()["formats"]
    assert [suffix for one in found for suffix in one["suffixes"]] == list(formats.SUFFIXES)


def test_each_line_has_its_outcome_in_order(http: httpx.Client, corpus: str) -> None:
    good = [{"id": f"n{n}", "text": f"Mill {n} is old."} for n in range(20)]
    lines = [json.dumps(one) for one in good] + ["{", '{"id": "x"}', json.dumps({"id": "empty", "text": " "}), ""]
    headers, where = {"content-type": "application/x-ndjson"}, {"corpus": corpus}
    reply = http.post("/v1/documents", params=where, content="\n".join(lines), headers=headers)
    outcomes = [json.loads(line) for line in reply.text.splitlines()]
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [one.get("document") for one in outcomes] == [*(one["id"] for one in good), None, None, "empty"]
    assert [one["status"] for one in outcomes[-4:]] == [201, 400, 422, 422]
    assert [one["problem"]["code"] for one in outcomes[-3:]] == ["bad_json", "invalid_request", "bad_document"]
    assert http.get(f"/v1/corpora/{corpus}").json()["corpus"]["documents"] == 20


def test_each_file_of_a_form_has_its_outcome(http: httpx.Client, corpus: str) -> None:
    files = [
        ("file", ("mill.html", b"<h1>Mill</h1><p>Ada Holm built it in 1871.</p>")),
        ("file", ("empty.txt", b"")),
        ("other", ("weir.txt", "The weir of Ysé.".encode())),
    ]
    reply = http.post("/v1/files", params={"corpus": corpus}, files=files)
    sent = reply.json()
    assert (reply.status_code, sent["taken"], sent["refused"]) == (207, 2, 1)
    statuses = {one["file"]: one["status"] for one in sent["results"]}
    assert statuses == {"mill.html": 201, "empty.txt": 422, "weir.txt": 201}
    assert http.post("/v1/files", params={"corpus": corpus}, files=files[:1]).status_code == 200


def test_what_is_no_form_of_files_is_a_problem(http: httpx.Client, corpus: str) -> None:
    problem(http.post("/v1/files", json={}), 415, "not_form")
    problem(http.post("/v1/files", data={"a": "b"}, files={"file": ("a.txt", b"x")}), 400, "bad_form")
    headers = {"content-type": "multipart/form-data; boundary=b"}
    problem(http.post("/v1/files", content=b"x", headers=headers), 400, "bad_form")
