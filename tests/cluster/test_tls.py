"""A node that speaks TLS alone, reached by rediss:// as a user, with its certificate checked."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa.cli import connection
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable
from tests.nodes import Node, free_port, wait_until


def certificates(folder: Path) -> None:
    """ca.pem, node.pem and node.key for localhost."""
    for words in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca",
        "req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=localhost",
    ):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    sign = "x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out node.pem -days 2 -extfile names"
    subprocess.run(["openssl", *sign.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """(address with user and password, folder of the certificates)"""
    certificates(tmp_path)
    port = free_port()
    lines = [
        "port 0", f"tls-port {port}", "tls-cluster yes", "tls-cert-file node.pem", "tls-key-file node.key",
        "tls-ca-cert-file ca.pem", "tls-auth-clients no", "user app on >s3cret ~* &* +@all",
    ]  # fmt: skip
    plain = Node(tmp_path, port=port, module=None, cluster=True, extra=tuple(tuple(line.split()) for line in lines))
    plain.launch()
    address = f"rediss://app:s3cret@127.0.0.1:{port}"
    settings = Settings(redis=f"{address}?ssl_ca_certs={tmp_path / 'ca.pem'}")
    try:
        with connection.node_client(settings, "127.0.0.1", port) as client:
            wait_until(client.ping, "the node answers")
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "its slots are served")
        yield address, tmp_path
    finally:
        plain.stop()


async def test_an_engine_speaks_tls_to_a_node_whose_certificate_it_checks(node: tuple[str, Path]) -> None:
    address, folder = node
    engine = await Engine.connect(Settings(redis=f"{address}?ssl_ca_certs={folder / 'ca.pem'}"))
    try:
        (master,) = engine.masters.nodes()
        assert await engine.masters.on(master, "ACL", "WHOAMI") in ("app", b"app")
    finally:
        await engine.close()


async def test_a_certificate_of_somebody_else_is_refused(node: tuple[str, Path]) -> None:
    address, _ = node
    with pytest.raises(ClusterUnavailable, match="certificate"):
        await Engine.connect(Settings(redis=address))
