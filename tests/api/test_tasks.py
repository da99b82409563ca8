"""Files that are read behind the reply: how far that is, its end, and what another process says of it."""

import json
import os
import signal
from typing import Any

import httpx

from shardqa import Client, keys
from shardqa.cluster.local import LocalCluster
from tests.api.conftest import Server, StartApi, cluster_client, problem
from tests.api.scans import scan
from tests.nodes import wait_until

FILES = [("file", (f"{n}.txt", f"Mill {n} is old.".encode())) for n in range(8)]
SLOW = """
import asyncio
from shardqa.api.routes import files
read = files._read
async def slow(*given):
    await asyncio.sleep(3)
    return await read(*given)
files._read = slow
"""


def begun(http: httpx.Client, corpus: str, key: str = "") -> str:
    """The address of a new task."""
    headers = {"idempotency-key": key} if key else {}
    reply = http.post("/v1/files", params={"corpus": corpus, "wait": "false"}, files=FILES, headers=headers)
    assert (reply.status_code, reply.json()["stage"], reply.json()["total"]) == (202, "running", len(FILES))
    return reply.headers["location"]


def ended(http: httpx.Client, address: str, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = wait_until(
        lambda: task if (task := http.get(address).json())["stage"] == stage else None, stage
    )
    return found


def test_a_task_tells_each_files_outcome_at_its_end(http: httpx.Client, api: Server, corpus: str) -> None:
    with http.stream("GET", begun(http, corpus), headers={"accept": "text/event-stream"}) as events:
        lines = [line for line in events.iter_lines() if line.startswith("event:")]
    assert lines[-1] == "event: task"
    with Client(api.url) as client:
        task = client.add_files([__file__], corpus)
        done = wait_until(lambda: one if (one := client.task(task.id)).stage == "done" else None, "done")
        assert (done.refused, [one.file for one in done.results]) == (0, ["test_tasks.py"])
        assert client.cancel(task.id).stage == "done"
        assert client.tasks(corpus) == []
        corpus_now = client.corpus(corpus).corpus
        assert corpus_now is not None
        assert corpus_now.documents == len(FILES) + 1


def test_the_same_idempotency_key_finds_the_same_task(http: httpx.Client, corpus: str) -> None:
    where, headers = {"corpus": corpus, "wait": "false"}, {"idempotency-key": corpus}
    first, second = (http.post("/v1/files", files=FILES, params=where, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.headers["location"] == second.headers["location"]
    ended(http, first.headers["location"], "done")


def test_a_task_that_is_cancelled_keeps_what_it_has_done(
    start_api: StartApi, cluster: LocalCluster, corpus: str
) -> None:
    with start_api(SLOW, redis=cluster.seed()).client() as http:
        address = begun(http, corpus)
        wait_until(lambda: http.get(address).json().get("documents"), "a document is there")
        under_way = http.get("/v1/tasks", params={"corpus": corpus}).json()["tasks"]
        assert [one["id"] for one in under_way] == [address.rpartition("/")[2]]
        assert http.delete(address).json()["stage"] in ("cancelling", "cancelled")
        assert 0 < ended(http, address, "cancelled")["documents"] < len(FILES)


def test_a_task_of_a_process_that_ended_is_broken(
    start_api: StartApi, cluster: LocalCluster, http: httpx.Client, corpus: str
) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        server = start_api(SLOW, redis=cluster.seed())
        with server.client() as other:
            address = begun(other, corpus, how.name)
        assert server.pid is not None
        os.kill(server.pid, how)
        if how == signal.SIGKILL:
            with cluster_client(cluster) as client:  # as it expires
                client.delete(keys.task_mark(address.rpartition("/")[2]))
        assert "do it again" in ended(http, address, "broken")["detail"]
    assert begun(http, corpus, how.name) == address, "a broken one begins anew"
    assert ended(http, address, "done")["documents"] == len(FILES)
    problem(http.get("/v1/tasks/none"), 404, "unknown_task")


def test_a_scan_is_read_by_ocr_and_its_pages_are_counted(http: httpx.Client, corpus: str) -> None:
    files = [("file", ("ferry.pdf", scan("The ferry carries 144 people.", "It was built in Holm.")))]
    refused = http.post("/v1/files", params={"corpus": corpus}, files=files).json()["results"][0]["problem"]
    assert "ocr=true" in refused["detail"]
    where = {"corpus": corpus, "ocr": "true", "wait": "false"}
    address = http.post("/v1/files", params=where, files=files).headers["location"]
    with http.stream("GET", address, headers={"accept": "text/event-stream"}) as events:
        tasks = [json.loads(line[6:]) for line in events.iter_lines() if line.startswith("data: {")]
    assert (tasks[-1]["stage"], tasks[-1]["page"], tasks[-1]["pages"], tasks[-1]["documents"]) == ("done", 2, 2, 1)
    text = http.get("/v1/documents/ferry.pdf", params={"corpus": corpus}).json()["text"]
    assert text.split() == ["The", "ferry", "carries", "144", "people.", "It", "was", "built", "in", "Holm."]


def test_where_ocr_is_not_installed_the_answer_names_what_to_install(
    start_api: StartApi, cluster: LocalCluster, corpus: str
) -> None:
    with start_api("import sys; sys.modules['rapidocr'] = None", redis=cluster.seed()).client() as http:
        reply = http.post("/v1/files", params={"corpus": corpus, "ocr": "true"}, files=FILES[:1])
    problem = reply.json()["results"][0]["problem"]
    assert problem["code"] == "setup"
    assert "rapidocr is not installed" in problem["detail"]
    assert "'.[ocr]'" in problem["detail"]
