"""The API by https: a certificate of its own, clients that check it, and who comes by plain http."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardqa import AsyncClient, Client
from shardqa.client import Retries, Unreachable
from shardqa.cluster.local import LocalCluster
from tests.api.conftest import NOBODY, Server, StartApi, running_api

ONCE = Retries(attempts=1)


@pytest.fixture(scope="module")
def tls(certificate_folder: Path) -> dict[str, Any]:
    return {"http_tls_cert": certificate_folder / "node.pem", "http_tls_key": certificate_folder / "node.key"}


@pytest.fixture(scope="module")
def server(cluster: LocalCluster, tls: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_api(tmp_path_factory.mktemp("https"), redis=cluster.seed(), **tls) as server:
        yield server


@pytest.fixture
def trusting(certificate_folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate_folder / "ca.pem"))


async def test_clients_that_trust_its_authority_are_answered(server: Server, trusting: ssl.SSLContext) -> None:
    url = f"https://localhost:{server.port}"
    with Client(url, verify=trusting) as client:
        assert client.ready().status == "ready"
    async with AsyncClient(url, verify=trusting) as other:
        assert (await other.formats()).formats


@pytest.mark.parametrize(("scheme", "message"), [("https", "certificate"), ("http", "https://")])
def test_a_client_that_can_not_speak_to_it_says_why(server: Server, scheme: str, message: str) -> None:
    with Client(f"{scheme}://localhost:{server.port}", retries=ONCE) as client, pytest.raises(Unreachable) as refused:
        client.ready()
    assert message in str(refused.value)


def test_a_handshake_that_does_not_come_is_given_up(tls: dict[str, Any], start_api: StartApi) -> None:
    hasty = start_api("from shardqa.api import http_protocol; http_protocol.HEAD_SECONDS = 1", redis=NOBODY, **tls)
    with hasty.connect() as silent:
        assert silent.recv(1) == b""
