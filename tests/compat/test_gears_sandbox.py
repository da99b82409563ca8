"""A function of a real node against the machine: what it may do is in INFO, and what it may not fails."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from shardqa import topology
from shardqa.cluster import doctor, redis_server
from tests.compat.scripts import send
from tests.nodes import Node, wait_until

ROOT = Path(__file__).parents[2]
TRY = """
def attempt(_):
    import os, socket, subprocess
    try:
        {code}
    except OSError as error:
        return 'refused'
    return 'done'
GB('PythonReader').map(attempt).run(lambda: [1], mode='async_local')
"""


def attempt(client: Redis, code: str) -> str:
    results, errors = send(client, "RG.PYEXECUTE", TRY.format(code=code))
    assert errors == []
    return str(results[0])


def in_force(client: Redis) -> str:
    return str(wait_until(lambda: client.info("shardqa").get("shardqa_sandbox"), "the worker tells INFO"))


def by_doctor(client: Redis) -> dict[str, tuple[str, str]]:
    """What `shardqa doctor` says of a node's worker: verdict and finding by check."""
    nothing = frozenset[int](), frozenset[str]()
    place = topology.Node("", "", 0, "master", None, (), *nothing, connected=True)
    return {finding.check: (finding.verdict, finding.found) for finding in doctor._worker(place, client)}


@pytest.mark.parametrize(
    ("wall", "code"),
    [
        ("landlock", "open({folder!r} + '/appendonlydir/stolen', 'w')"),
        ("landlock", "os.listdir({folder!r})"),
        ("seccomp", "subprocess.run(['true'])"),
        ("seccomp", "os.kill({redis}, 9)"),
        ("seccomp", "os.fork()"),
        ("network", "socket.create_connection(('127.0.0.1', {port}))"),
    ],
)
def test_a_function_is_refused(redis_node: Node, wall: str, code: str) -> None:
    with redis_node.client(decode_responses=True) as client:
        if f"{wall}:missing" in in_force(client):
            pytest.skip(f"this kernel has no {wall}")
        pid = client.info("server")["process_id"]
        names = {"folder": str(redis_node.folder), "redis": pid, "port": redis_node.port}
        assert attempt(client, code.format(**names)) == "refused"
        assert client.ping()


def test_a_node_without_a_sandbox_says_so(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("SANDBOX", "no"))
    with node.client(decode_responses=True) as client:
        assert in_force(client) == "off"
        assert by_doctor(client)["sandbox"] == ("warning", "off")
        assert attempt(client, "subprocess.run(['true'])") == "done"


def test_the_network_can_be_opened_to_functions(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("NETWORK", "any"))
    with node.client(decode_responses=True) as client:
        assert "network:any" in in_force(client)
        assert "network:any" in by_doctor(client)["sandbox"][1]
        assert attempt(client, f"socket.create_connection(('127.0.0.1', {node.port}))") == "done"


def test_a_function_that_needs_more_memory_than_there_may_be_fails_alone(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("MEMORY", "1024"))
    with node.client(decode_responses=True) as client:
        pid = client.info("shardqa")["shardqa_worker_pid"]
        big = "GB('PythonReader').map(lambda n: len(bytearray(n << 20))).run(lambda: [2000], mode='async_local')"
        results, errors = send(client, "RG.PYEXECUTE", big)
        assert results == []
        assert errors == [
            "OOM the function needed more memory than the worker may have (1024 MB, the module's argument MEMORY)"
        ]
        assert send(client, "RG.PYEXECUTE", big.replace("2000", "2")) == [["2097152"], []]
        info = client.info("shardqa")
        assert (info["shardqa_worker_pid"], info["shardqa_memory_limit_mb"]) == (pid, 1024)
        assert "memory:1024MB" in info["shardqa_sandbox"]
        assert 0 < wait_until(lambda: client.info("shardqa").get("shardqa_allocated_mb")) < 1024
        verdict, found = by_doctor(client)["worker's memory"]
        assert (verdict, found.partition(" ")[2]) == ("ok", "of 1024 MB")
        assert by_doctor(client)["sandbox"] == ("ok", in_force(client))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("MEMORY", "100"), "megabytes from 512 to 16777216, or 0"),
        (("NETWORK", "none"), "peers or any"),
        (("BACKOFF", "-1"), "milliseconds from 0 to 3600000"),
        (("USER", "nobody-of-this-name"), "the name of a user of this machine, and not root"),
        (("USER", "root"), "the name of a user of this machine, and not root"),
    ],
)
def test_a_wrong_argument_ends_the_start_and_says_what_is_wanted(
    tmp_path: Path, words: tuple[str, str], wanted: str
) -> None:
    node = Node(tmp_path / "node", module_arguments=words)
    node.launch()
    assert node.ended() != 0
    assert f"module argument {words[0]} {words[1]} is wrong: it must be {wanted}" in node.log


@pytest.fixture
def readable_python() -> Iterator[Path]:
    """An interpreter that every user may read and that has this one's packages; skips where there is none."""
    found = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(p)), "")
    version = [found, "-c", f"import sys; print(sys.version_info[:2] == {sys.version_info[:2]})"]
    if not found or subprocess.run(version, capture_output=True, text=True, check=True).stdout != "True\n":
        pytest.skip("this Python lies where other users may not read, and the system has no other of its version")
    with tempfile.TemporaryDirectory(prefix="shardqa-python-") as folder:  # pytest's own are closed to other users
        os.chmod(folder, 0o755)
        subprocess.run([found, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = (Path(folder) / "lib").glob("python*/site-packages")
        (packages / "async_timeout.py").write_text("from asyncio import timeout")  # redis-py's need before 3.11.3
        paths = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "shardqa-tests.pth").write_text("\n".join([*paths, str(ROOT / "src")]))
        yield Path(folder) / "bin" / "python"


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts a Redis that may change users")
def test_a_worker_has_a_user_of_its_own(start_node: Callable[..., Node], readable_python: Path) -> None:
    node = start_node(module_arguments=("USER", "nobody"), python=readable_python)
    with node.client(decode_responses=True) as client:
        nobody = pwd.getpwnam("nobody")
        assert f"user:{nobody.pw_uid}" in in_force(client)
        pid = int(client.info("shardqa")["shardqa_worker_pid"])
        status = Path(f"/proc/{pid}/status").read_text()
        assert f"Uid:\t{nobody.pw_uid}\t{nobody.pw_uid}\t{nobody.pw_uid}" in status
        assert f"Gid:\t{nobody.pw_gid}" in status
        assert client.execute_command("RG.PYEXECUTE", "GB('PythonReader').run(lambda: [1])") == [["1"], []]
        os.kill(pid, signal.SIGSTOP)  # what Redis can't kill would stay
        wait_until(lambda: client.info("shardqa")["shardqa_worker_pid"] not in (0, pid), "a new worker")


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to be another user")
def test_a_redis_that_may_not_change_users_says_so(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", module_arguments=("USER", "nobody"))
    node.launch()
    node.stop()
    (node.folder / "redis.log").unlink(missing_ok=True)
    server = str(redis_server.find_server())
    command = [
        "setpriv",
        "--bounding-set=-setuid",
        "--inh-caps=-setuid",
        server,
        str(node.folder / redis_server.CONFIG),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=node.folder)
    assert "left out, or Redis must run as root (it lacks CAP_SETUID, CAP_SETGID or CAP_KILL)" in done.stdout
    assert done.returncode != 0


def test_a_folder_can_be_opened_to_functions(start_node: Callable[..., Node], tmp_path: Path) -> None:
    node = start_node(module_arguments=("WRITABLE", str(tmp_path)))
    with node.client(decode_responses=True) as client:
        assert attempt(client, f"open({str(tmp_path / 'made')!r}, 'w')") == "done"
    assert (tmp_path / "made").exists()
