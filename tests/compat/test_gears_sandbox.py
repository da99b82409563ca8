"""A function of a real node against the machine: what it may do is in INFO, and what it may not fails."""

from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from tests.compat.scripts import send
from tests.nodes import Node, wait_until

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


@pytest.mark.parametrize(
    ("wall", "code"),
    [
        ("landlock", "open({folder!r} + '/appendonlydir/stolen', 'w')"),
        ("landlock", "os.listdir({folder!r})"),
        ("seccomp", "subprocess.run(['true'])"),
        ("seccomp", "os.kill({redis}, 9)"),
        ("seccomp", "os.fork()"),
    ],
)
def test_a_function_is_refused(redis_node: Node, wall: str, code: str) -> None:
    with redis_node.client(decode_responses=True) as client:
        if f"{wall}:missing" in in_force(client):
            pytest.skip(f"this kernel has no {wall}")
        pid = client.info("server")["process_id"]
        assert attempt(client, code.format(folder=str(redis_node.folder), redis=pid)) == "refused"
        assert client.ping()


def test_a_node_without_a_sandbox_says_so(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("SANDBOX", "no"))
    with node.client(decode_responses=True) as client:
        assert in_force(client) == "off"
        assert attempt(client, "subprocess.run(['true'])") == "done"


def test_a_folder_can_be_opened_to_functions(start_node: Callable[..., Node], tmp_path: Path) -> None:
    node = start_node(module_arguments=("WRITABLE", str(tmp_path)))
    with node.client(decode_responses=True) as client:
        assert attempt(client, f"open({str(tmp_path / 'made')!r}, 'w')") == "done"
    assert (tmp_path / "made").exists()
