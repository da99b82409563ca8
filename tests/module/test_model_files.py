"""Large models in files of a folder that the nodes of a host share (MODELS)."""

import os
import stat
from pathlib import Path

import pytest

from .servers import Make, Server, in_sync, replicate, until  # noqa: TID251 (this package is tests/module)

BLOB = bytes(range(256)) * 64
LARGE = "MODEL_FILE_BYTES 1000"


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def store(server: Server, key: str, blob: bytes = BLOB) -> None:
    assert (
        server.client().execute_command("AI.MODELSTORE", key, "ONNX", "CPU", "BLOB", blob[:9000], blob[9000:]) == b"OK"
    )


def in_files(server: Server) -> int:
    return int(server.client().info("shardqa")["shardqa_model_bytes_in_files"])


def test_nodes_share_the_file_of_a_model_and_the_last_one_takes_it_away(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    first, second = (make(arguments=f"MODELS {folder} {LARGE}") for _ in range(2))
    store(first, "m")
    store(second, "other")
    store(second, "small", b"x" * 999)
    (file,) = files(folder)
    assert file.read_bytes() == BLOB
    assert stat.S_IMODE(file.stat().st_mode) == 0o400
    assert (in_files(first), in_files(second)) == (len(BLOB), len(BLOB))
    assert first.client().execute_command("AI.MODELGET", "m", "BLOB") == BLOB
    assert first.seen("MODELLOAD")[-1][-2:] == [str(file), ""]  # the worker opens it by itself
    first.client().delete("m")
    until(lambda: in_files(first) == 0)
    assert files(folder) == [file]
    second.client().flushall()
    until(lambda: files(folder) == [])


def test_a_model_comes_back_from_rdb_copy_and_dump_into_its_file(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    server = make(arguments=f"MODELS {folder} {LARGE}")
    store(server, "m")
    client = server.client()
    client.copy("m", "copied")
    client.restore("restored", 0, client.dump("m"))
    assert len(files(folder)) == 1
    client.save()
    server.restart()
    assert [server.client().execute_command("AI.MODELGET", key, "BLOB") for key in ("m", "copied", "restored")] == [
        BLOB
    ] * 3
    assert len(files(folder)) == 1
    assert in_files(server) == 3 * len(BLOB)


def test_what_a_crash_left_is_swept_and_nothing_else(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / f"{'0' * 32}.0.model").write_bytes(BLOB)
    make(arguments=f"MODELS {folder}")
    assert [path.name for path in files(folder)] == ["notes.txt"]


def test_a_file_of_the_same_name_with_other_content_is_left_alone(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    server = make(arguments=f"MODELS {folder} {LARGE}")
    store(server, "m")
    (file,) = files(folder)
    server.client().delete("m")
    until(lambda: files(folder) == [])
    file.write_bytes(b"damaged")
    store(server, "m")
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == BLOB
    assert file.read_bytes() == b"damaged"
    assert len(files(folder)) == 2


@pytest.mark.parametrize("kind", ["a file in its place", "a folder that can't be written"])
def test_without_a_folder_to_write_models_stay_in_memory_and_the_log_says_so(
    make: Make, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "models"
    if kind.startswith("a file"):
        folder.write_text("")
    elif os.geteuid() == 0:
        folder = Path("/proc/self/models")
    else:
        folder.mkdir(0o500)
    server = make(arguments=f"MODELS {folder} {LARGE}")
    store(server, "m")
    assert in_files(server) == 0
    assert server.client().execute_command("AI.MODELGET", "m", "BLOB") == BLOB
    assert "a model is kept in memory, since in the folder" in server.log


def test_memory_usage_tells_a_file_from_memory(make: Make, tmp_path: Path) -> None:
    server = make(arguments=f"MODELS {tmp_path / 'models'} MODEL_FILE_BYTES 10000")
    store(server, "file")
    store(server, "memory", BLOB[:9999])
    client = server.client()
    assert client.memory_usage("file") < 1000 < 9999 < client.memory_usage("memory")


def test_a_replica_without_the_folder_has_the_same_models(make: Make, tmp_path: Path) -> None:
    """By digest: those in files, with PADDED inputs, on nodes that run several at once."""
    master = make(arguments=f"MODELS {tmp_path / 'models'} {LARGE} THREADS_PER_QUEUE 2")
    replica = replicate(make, master)
    store(master, "file")
    store(master, "small", b"x")
    words = ("BATCHSIZE", 8, "MINBATCHSIZE", 2, "PADDED", 2, "a", "b", "BLOB", BLOB)
    master.client().execute_command("AI.MODELSTORE", "padded", "ONNX", "CPU", "TAG", "v1", *words)
    master.client().copy("padded", "copied")

    def digests(server: Server) -> list[bytes]:
        found: list[bytes] = server.client().execute_command(
            "DEBUG", "DIGEST-VALUE", "file", "small", "padded", "copied"
        )
        return found

    in_sync(master, replica)
    expected = digests(master)
    assert digests(replica) == expected
    assert len({*expected, b"0" * 40}) == 4  # a copy is equal, all others differ, none is absent
    assert (in_files(master), in_files(replica)) == (3 * len(BLOB), 0)
    for server in (master, replica):
        server.restart()
        assert digests(server) == expected
