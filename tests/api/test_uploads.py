"""Many documents and files in one request: lines of JSON, forms."""

import json

import httpx


def test_each_line_has_its_outcome_in_order(http: httpx.Client, corpus: str) -> None:
    good = [{"id": f"n{n}", "text": f"Mill {n} is old."} for n in range(20)]
    lines = [json.dumps(one) for one in good] + ["{", '{"id": "x"}', json.dumps({"id": "empty", "text": " "}), ""]
    reply = http.post(
        "/v1/documents",
        params={"corpus": corpus},
        content="\n".join(lines),
        headers={"content-type": "application/x-ndjson"},
    )
    told = [json.loads(line) for line in reply.text.splitlines()]
    assert reply.headers["content-type"] == "application/x-ndjson"
    assert [one.get("document") for one in told] == [*(one["id"] for one in good), None, None, "empty"]
    assert [one["status"] for one in told[-4:]] == [201, 400, 422, 422]
    assert [one["problem"]["code"] for one in told[-3:]] == ["bad_json", "invalid_request", "bad_document"]
    assert http.get(f"/v1/corpora/{corpus}").json()["corpus"]["documents"] == 20


def test_each_file_of_a_form_has_its_outcome(http: httpx.Client, corpus: str) -> None:
    files = [
        ("file", ("mill.html", b"<h1>Mill</h1><p>Ada Holm built it in 1871.</p>")),
        ("file", ("empty.txt", b"")),
        ("other", ("weir.txt", "The weir of Ysé.".encode())),
    ]
    reply = http.post("/v1/files", params={"corpus": corpus}, files=files)
    told = reply.json()
    assert (reply.status_code, told["taken"], told["refused"]) == (207, 2, 1)
    assert [(one["file"], one["status"]) for one in told["results"]] == [
        ("mill.html", 201),
        ("empty.txt", 422),
        ("weir.txt", 201),
    ]
    assert http.post("/v1/files", params={"corpus": corpus}, files=files[:1]).status_code == 200


def test_what_is_no_form_of_files_is_a_problem(http: httpx.Client, corpus: str) -> None:
    no_form = http.post("/v1/files", json={})
    assert (no_form.status_code, no_form.json()["code"]) == (415, "not_form")
    only_fields = http.post("/v1/files", data={"a": "b"}, files={"file": ("a.txt", b"x")})
    assert (only_fields.status_code, only_fields.json()["code"]) == (400, "bad_form")
    broken = http.post("/v1/files", content=b"x", headers={"content-type": "multipart/form-data; boundary=b"})
    assert (broken.status_code, broken.json()["code"]) == (400, "bad_form")
