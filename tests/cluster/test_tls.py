"""A node that speaks TLS alone, reached by rediss:// as a user, with its certificate checked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa.cli import connection
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import ClusterUnavailable
from tests.certificates import certificates
from tests.nodes import Node, free_port, wait_until


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address with user and password, folder of the certificates)"""
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder)
    port = free_port()
    lines = [
        "port 0", f"tls-port {port}", "tls-cluster yes", "tls-cert-file node.pem", "tls-key-file node.key",
        "tls-ca-cert-file ca.pem", "tls-auth-clients yes", "user app on >s3cret ~* &* +@all",
    ]  # fmt: skip
    plain = Node(folder, port=port, module=None, cluster=True, extra=tuple(tuple(line.split()) for line in lines))
    plain.launch()
    address = f"rediss://app:s3cret@127.0.0.1:{port}"
    settings = Settings(redis=f"{address}?{files(folder, 'ca_certs', 'certfile', 'keyfile')}")
    try:
        with connection.node_client(settings, "127.0.0.1", port) as client:
            wait_until(client.ping, "the node answers")
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "its slots are served")
        yield address, folder
    finally:
        plain.stop()


def files(folder: Path, *names: str) -> str:
    """Options of an address: which of the caller's files it names."""
    of = {"ca_certs": "ca.pem", "certfile": "client.pem", "keyfile": "client.key"}
    return "&".join(f"ssl_{name}={folder / of[name]}" for name in names)


async def test_an_engine_speaks_tls_with_a_certificate_of_its_own_to_a_node_whose_it_checks(
    node: tuple[str, Path],
) -> None:
    address, folder = node
    settings = Settings(redis=f"{address}?{files(folder, 'ca_certs', 'certfile', 'keyfile')}")
    async with await Engine.connect(settings) as engine:
        (master,) = engine.shards.nodes()
        assert await engine.shards.on(master, "ACL", "WHOAMI") in ("app", b"app")


@pytest.mark.parametrize(
    ("names", "reason"), [(("certfile", "keyfile"), "certificate"), (("ca_certs",), ".")], ids=["unchecked", "without"]
)
async def test_a_certificate_of_somebody_else_and_who_has_none_are_refused(
    node: tuple[str, Path], names: tuple[str, ...], reason: str
) -> None:
    address, folder = node
    with pytest.raises(ClusterUnavailable, match=reason):
        await Engine.connect(Settings(redis=f"{address}?{files(folder, *names)}"))
