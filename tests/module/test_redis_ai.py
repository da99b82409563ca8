"""RedisAI's users find their load arguments, AI.CONFIG and INFO; its old dumps are refused with a remedy."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nodes import Node

from .servers import MODULE, ROOT, Make, Server, until  # noqa: TID251 (this package is tests/module)

Pair = tuple[Server, Server]
CHUNK = 511 << 20


def config(server: Server, *words: Any) -> Any:
    return server.client().execute_command("AI.CONFIG", *words)


def test_settings_are_shown_and_changed(server: Server) -> None:
    assert config(server, "GET", "MODEL_CHUNK_SIZE") == CHUNK
    assert config(server, "GET", "BACKENDSPATH") is None
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


def test_the_module_is_shardqa_unless_an_argument_names_it(make: Make) -> None:
    assert [m[b"name"] for m in make().client().module_list()] == [b"shardqa"]


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


def as_redis_ai(dump: bytes) -> bytes:
    """A payload as of encoding version 4, which the last 10 bits of the type's id say."""
    id = int.from_bytes(dump[2:10], "big")
    return dump[:2] + (id & ~1023 | 4).to_bytes(8, "big") + dump[10:]


@pytest.mark.parametrize("what", ["tensor", "model"])
def test_what_redis_ai_has_saved_is_refused_in_one_clear_line(server: Server, what: str) -> None:
    client = server.client()
    client.execute_command("AI.TENSORSET", "tensor", "FLOAT", 1)
    client.execute_command("AI.MODELSTORE", "model", "ONNX", "CPU", "BLOB", "x")
    client.execute_command("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1)
    assert server.error("RESTORE", "old", 0, as_redis_ai(client.dump(what))) == "ERR Bad data format"
    assert f"a {what} that RedisAI has saved (version 4) can't be read" in server.log
    assert "docs/ai.md" in server.log
