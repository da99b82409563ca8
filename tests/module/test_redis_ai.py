"""RedisAI's users find their load arguments, AI.CONFIG and INFO; its old dumps are read."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import ResponseError

from tests.nodes import Node

from .servers import MODULE, ROOT, Make, Server, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
CHUNK = 511 << 20


def config(server: Server, *words: Any) -> Any:
    return server.client().execute_command("AI.CONFIG", *words)


def test_settings_are_shown_and_changed(server: Server) -> None:
    assert config(server, "GET", "MODEL_CHUNK_SIZE") == CHUNK
    assert config(server, "GET", "BACKENDSPATH").endswith(b"/backends")  # beside the module
    assert config(server, "GET", "SPEED") is None
    assert config(server, "model_chunk_size", 4) == b"OK"
    assert config(server, "BACKENDSPATH", "some/where") == b"OK"
    assert config(server, "GET", "MODEL_CHUNK_SIZE") == 4
    assert config(server, "GET", "BACKENDSPATH") == b"some/where"


def test_a_file_longer_than_the_chunk_size_comes_in_parts(server: Server) -> None:
    server.client().execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "123456789")
    config(server, "MODEL_CHUNK_SIZE", 4)
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == [b"1234", b"5678", b"9"]
    assert server.client().execute_command("AI.MODELGET", "m", "META", "BLOB")[-1] == [b"1234", b"5678", b"9"]


def test_redis_ais_load_arguments_are_taken(make: Make) -> None:
    numbers = "THREADS_PER_QUEUE 4 INTRA_OP_PARALLELISM 2 INTER_OP_PARALLELISM 1 MODEL_CHUNK_SIZE 1000"
    others = "MODEL_EXECUTION_TIMEOUT 2000 BACKEND_MEMORY_LIMIT 100 BACKENDSPATH /b ONNX x/y.so"
    server = make(arguments=f"{numbers} {others}")
    assert config(server, "GET", "MODEL_CHUNK_SIZE") == 1000
    assert config(server, "GET", "BACKENDSPATH") == b"/b"
    (hello,) = server.seen("HELLO")
    assert dict(zip(hello[7::2], hello[8::2], strict=True)).items() >= {
        ("threads", "2"),
        ("threads_per_queue", "4"),
        ("timeout", "10000"),
        ("execution_timeout", "2000"),
    }
    for name in ("INTER_OP_PARALLELISM", "BACKEND_MEMORY_LIMIT", "BACKENDSPATH", "ONNX"):
        assert f"module argument {name} has no effect here" in server.log


def test_redis_gears_load_arguments_are_taken(make: Make) -> None:
    effective = "MaxExecutions 7 maxexecutionsperregistration 3 ExecutionMaxIdleTime 20000 ProfileExecutions 1"
    others = "CreateVenv 1 DownloadDeps 1 DependenciesUrl http://x PythonInstallationDir /p Plugin /gears_python.so"
    server = make(arguments=f"{effective} {others}")
    (hello,) = server.seen("HELLO")
    assert dict(zip(hello[7::2], hello[8::2], strict=True)).items() >= {
        ("maxexecutions", "7"),
        ("maxexecutionsperregistration", "3"),
        ("executionmaxidletime", "20000"),
        ("profileexecutions", "1"),
    }
    for name in ("CreateVenv", "DownloadDeps", "DependenciesUrl", "PythonInstallationDir", "Plugin"):
        assert f"module argument {name} has no effect here" in server.log


def test_an_unknown_argument_is_kept_for_functions_and_its_value_is_not_logged(make: Make) -> None:
    server = make(arguments="MySQLPassword s3cret SPEED 11")
    (hello,) = server.seen("HELLO")
    assert hello[-4:] == ["MySQLPassword", "s3cret", "SPEED", "11"]
    assert "module argument MySQLPassword is none of shardqa's" in server.log
    assert "s3cret" not in server.log


def test_the_module_is_shardqa_unless_an_argument_names_it(make: Make) -> None:
    client = make().client()
    assert [m[b"name"] for m in client.module_list()] == [b"shardqa"]
    assert "ai_RedisAI_version" in client.info("ai")
    assert "rg_worker_state" in client.info("rg")


def test_as_ai_it_shows_redis_ais_sections_in_its_order_before_its_own(tmp_path: Path) -> None:
    server = Server(tmp_path / "redis", arguments="NAME ai").start_named("ai")
    try:
        client = server.client()
        assert [m[b"name"] for m in client.module_list()] == [b"ai"]
        client.set_response_callback("INFO", bytes.decode)
        text = client.execute_command("INFO", "MODULES")
        sections = [part.split("\r\n")[0].strip() for part in text.split("#")]
        known = ["ai_versions", "ai_git", "ai_load_time_configs", "ai_backends_info", "ai_cpu"]
        assert [s for s in sections if s.startswith("ai_")][:5] == known
        fields = {line.partition(":")[0]: line.partition(":")[2] for line in text.split("\r\n") if ":" in line}
        assert (fields["ai_RedisAI_version"], fields["ai_low_level_API_version"]) == ("1.2.7", "1")
        assert fields["ai_threads_per_queue"] == "1"
        assert fields["ai_model_execution_timeout"] == "0"
        for name in ("self", "children", "main_thread"):
            assert float(fields[f"ai_{name}_used_cpu_sys"]) >= 0
            assert float(fields[f"ai_{name}_used_cpu_user"]) >= 0
        assert float(fields["ai_queue_CPU_bthread_n1_used_cpu_total"]) > 0
        own = client.execute_command("INFO", "shardqa")
        assert "# shardqa_link\r\nshardqa_worker_state:" in own
        assert not any(line.startswith(("ai_", "# ai_")) for line in own.split("\r\n"))
        assert "# rg_link\r\nrg_worker_state:" in client.execute_command("INFO", "RG")
    finally:
        server.stop()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Any]:
    """A server with `--loadmodule shardqa.so` and nothing else."""
    node = Node(tmp_path, module=None, extra=(("loadmodule", str(MODULE)),)).start()
    yield node.client()
    node.stop()
    assert node.ended() == 0


@pytest.mark.skipif(not os.access(ROOT / ".venv/bin/python", os.X_OK), reason="this checkout has no .venv")
@pytest.mark.skipif(MODULE != ROOT / "module/shardqa.so", reason="another file of the module is tested")
def test_without_any_argument_the_worker_runs_in_the_environment_the_module_lies_in(alone: Any) -> None:
    until(lambda: alone.info("shardqa")["shardqa_worker_state"] == "ready", 60)
    executable = Path(f"/proc/{alone.info('shardqa')['shardqa_worker_pid']}/cmdline").read_bytes().split(b"\0")[0]
    assert executable == str(ROOT / ".venv/bin/python").encode()


# ---- what RedisAI has saved: numbers and strings of each version, in its order

SAVED_TENSORS: list[tuple[int, list[Any]]] = [
    (version, [1, 0, 32, 0, 1, 2, 2, 1, 1, 1, 0, b"\1\0\0\0\2\0\0\0"]) for version in (0, 1, 3)
]
SAVED_TENSORS.append((4, [0, 32, 2, 2, 1, b"\1\0\0\0\2\0\0\0"]))
NAMES: list[Any] = [1, b"a\0", 1, b"c\0"]
SAVED_MODELS: list[tuple[int, list[Any]]] = [
    (0, [0, b"CPU\0", b"tag\0", 0, 0, *NAMES, b"graph"]),
    (1, [0, b"CPU\0", b"tag", 0, 0, *NAMES, 5, 1, b"graph"]),
    (2, [0, b"CPU\0", b"tag", 4, 2, 1000, *NAMES, 5, 2, b"gra", b"ph"]),
    (4, [0, b"CPU\0", b"tag", 4, 2, 1000, *NAMES, 5, 1, b"graph"]),
]
SAVED_SCRIPTS: list[tuple[int, list[Any]]] = [(version, [b"CPU\0", b"tag", b"def f(): pass\0"]) for version in (0, 2)]
SAVED_SCRIPTS.append((3, [b"CPU\0", b"tag", b"def f(): pass\0", 2, b"f\0", b"g\0"]))


def payload(client: Any, type: str, version: int, items: list[Any]) -> bytes:
    """A DUMP of a value of this type, which some key of the server has now, as RedisAI would have written it."""
    dump: bytes = client.dump(type)
    id = int.from_bytes(dump[2:10], "big") & ~1023 | version
    body = b"".join(
        b"\2\x80" + i.to_bytes(4, "big") if isinstance(i, int) else b"\5" + bytes([len(i)]) + i for i in items
    )
    return b"\x07\x81" + id.to_bytes(8, "big") + body + b"\0" + dump[-10:]


@pytest.fixture
def saved(server: Server) -> Any:
    client = server.client()
    client.execute_command("AI.TENSORSET", "tensor", "FLOAT", 1)
    client.execute_command("AI.MODELSTORE", "model", "ONNX", "CPU", "BLOB", "x")
    client.execute_command("AI.SCRIPTSTORE", "script", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "def f(): pass")
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
    return client


@pytest.mark.parametrize(("version", "items"), SAVED_TENSORS)
def test_a_tensor_that_redis_ai_has_saved_is_read(saved: Any, version: int, items: list[Any]) -> None:
    saved.restore("old", 0, payload(saved, "tensor", version, items))
    assert saved.execute_command("AI.TENSORGET", "old", "META", "VALUES") == [
        b"dtype", b"INT32", b"shape", [2, 1], b"values", [1, 2]
    ]  # fmt: skip


def test_strings_that_redis_ai_has_saved_are_read(saved: Any) -> None:
    saved.restore("old", 0, payload(saved, "tensor", 4, [7, 8, 1, 2, b"one\0two\0", 0, 4]))
    assert saved.execute_command("AI.TENSORGET", "old", "VALUES") == [b"one", b"two"]


@pytest.mark.parametrize(("version", "items"), SAVED_MODELS)
def test_a_model_that_redis_ai_has_saved_is_read_and_saved_in_our_form(
    saved: Any, version: int, items: list[Any]
) -> None:
    saved.restore("old", 0, payload(saved, "model", version, items))
    saved.restore("new", 0, saved.dump("old"))
    batching = [4, 2] if version > 1 else [0, 0]
    for key in "old", "new":
        meta = saved.execute_command("AI.MODELGET", key)
        assert meta[1:8:2] == [b"TF", b"CPU", b"tag", batching[0]]
        assert meta[9:] == [
            batching[1], b"inputs", [b"a"], b"outputs", [b"c"], b"minbatchtimeout", 1000 if version > 1 else 0, b"blob",
            b"graph",
        ]  # fmt: skip


def test_names_that_redis_ai_had_not_saved_are_waited_for(server: Server, saved: Any) -> None:
    server.block()
    saved.restore("old", 0, payload(saved, "model", 4, [3, b"CPU\0", b"tag", 0, 0, 0, 0, 0, 4, 1, b"SLOW"]))
    asked = [server.send("AI.MODELGET", "old", *words) for words in (["META"], [])]
    server.waiting(2)
    server.unblock()
    for connection in asked:
        assert connection.read_response()[10:14] == [b"inputs", [b"x"], b"outputs", [b"y"]]


def test_names_are_waited_for_no_longer_than_timeout_says(make: Make) -> None:
    server = make(arguments="TIMEOUT 200")
    server.block()
    client = server.client()
    with client.pipeline(transaction=True) as transaction:
        transaction.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "SLOW")
        transaction.execute_command("AI.MODELGET", "m", "META")
        stored = transaction.execute()[1]
    assert client.execute_command("AI.MODELGET", "m", "META") == stored
    assert stored[11] == []
    server.unblock()


@pytest.mark.parametrize(("version", "items"), SAVED_SCRIPTS)
def test_a_script_that_redis_ai_has_saved_is_read(saved: Any, version: int, items: list[Any]) -> None:
    saved.restore("old", 0, payload(saved, "script", version, items))
    assert saved.execute_command("AI.SCRIPTGET", "old") == [
        b"device", b"CPU", b"tag", b"tag", b"Entry Points", [b"f", b"g"] if version == 3 else [], b"source",
        b"def f(): pass",
    ]  # fmt: skip


@pytest.mark.parametrize("type", ["tensor", "model", "script"])
def test_what_is_not_of_the_form_that_redis_ai_wrote_is_refused(server: Server, saved: Any, type: str) -> None:
    forms = {"tensor": SAVED_TENSORS, "model": SAVED_MODELS, "script": SAVED_SCRIPTS}[type]
    for version, items in forms:
        first = b"?" if isinstance(items[0], int) else 9999
        for wrong in (items[:-1], [*items, 1], [first, *items[1:]], [*items[:-1], 1 << 31]):
            with pytest.raises(ResponseError, match="Bad data format"):
                saved.restore("old", 0, payload(saved, type, version, wrong))
    with pytest.raises(ResponseError, match="Bad data format"):
        saved.restore("old", 0, payload(saved, type, 5, forms[-1][1]))
    assert f"a {type} is saved in version 5" in server.log
    assert saved.ping()
