"""The API by https: a certificate of its own, clients that check it, and who comes by plain http."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardqa import AsyncClient, Client
from shardqa.client import Retries, Unreachable
from shardqa.cluster.local import LocalCluster
from tests.api.conftest import Server, running_api
from tests.certificates import certificates

ONCE = Retries(attempts=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("https")
    certificates(found)
    return found


@pytest.fixture(scope="module")
def server(cluster: LocalCluster, folder: Path) -> Iterator[Server]:
    files: dict[str, Any] = {"http_tls_cert": folder / "node.pem", "http_tls_key": folder / "node.key"}
    with running_api(folder, redis=cluster.seed(), **files) as found:
        yield found


@pytest.fixture
def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "ca.pem"))


async def test_clients_that_trust_its_authority_are_answered(server: Server, trusting: ssl.SSLContext) -> None:
    url = f"https://localhost:{server.port}"
    with Client(url, verify=trusting) as client:
        assert client.ready().status == "ready"
    async with AsyncClient(url, verify=trusting) as other:
        assert (await other.formats()).formats


def test_a_client_that_does_not_know_the_authority_says_so(server: Server) -> None:
    with Client(f"https://localhost:{server.port}", retries=ONCE) as client, pytest.raises(Unreachable) as refused:
        client.ready()
    assert "certificate" in str(refused.value)


def test_plain_http_gets_no_answer_and_the_client_says_what_to_try(server: Server) -> None:
    with Client(f"http://localhost:{server.port}", retries=ONCE) as client, pytest.raises(Unreachable) as refused:
        client.ready()
    assert "https://" in str(refused.value)


def test_a_handshake_that_does_not_come_is_given_up(cluster: LocalCluster, folder: Path) -> None:
    before = "from shardqa.api import http_protocol; http_protocol.HEAD_SECONDS = 1"
    files: dict[str, Any] = {"http_tls_cert": folder / "node.pem", "http_tls_key": folder / "node.key"}
    with (
        running_api(folder, before, redis=cluster.seed(), **files) as hasty,
        socket.create_connection(("127.0.0.1", hasty.port), timeout=30) as silent,
    ):
        assert silent.recv(1) == b""


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--tls-cert", "node.pem"], "give --tls-cert and --tls-key"),
        (["--tls-cert", "node.pem", "--tls-key", "nowhere.key"], "nowhere.key is no file"),
        (["--tls-cert", "node.pem", "--tls-key", "client.key"], "node.pem and client.key can't serve https"),
        (["--tls-cert", "names", "--tls-key", "node.key"], "names and node.key can't serve https"),
    ],
)
def test_files_that_can_not_serve_https_stop_the_start_with_the_way_out(
    folder: Path, flags: list[str], says: str
) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    command = [sys.executable, "-m", "shardqa.api", *flags]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
