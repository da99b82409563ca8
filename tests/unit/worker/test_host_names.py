"""With SANDBOX network a function finds hosts by name, over TCP: the walls let no datagram through."""

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shardqa.worker import sandbox

IN_A_NAMESPACE = ["unshare", "--map-root-user", "--net", "--mount"]
LOOK_UP = """
import os, socket
from shardqa.worker import sandbox
sandbox.confine(os.environ)
print(socket.getaddrinfo("database.example", 80, type=socket.SOCK_STREAM)[0][4])
"""
A_RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3"  # of the name asked for: 10.1.2.3


def answer(query: bytes) -> bytes:
    end = query.index(b"\0", 12) + 5
    records = A_RECORD if query[end - 4 : end - 2] == b"\0\1" else b""
    counts = struct.pack("!HHHH", 1, bool(records), 0, 0)
    return query[:2] + b"\x81\x80" + counts + query[12:end] + records


def serve(listening: socket.socket) -> None:
    while True:
        client, _ = listening.accept()
        while length := client.recv(2):
            reply = answer(client.recv(struct.unpack("!H", length)[0]))
            client.sendall(struct.pack("!H", len(reply)) + reply)


def look_up(network: str, settings: Path) -> str:
    """Inside the namespaces: what a confined worker says of a name, with a server of names of our own."""
    settings.write_text("nameserver 127.0.0.1\n")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--bind", str(settings), "/etc/resolv.conf"], check=True)
    threading.Thread(target=serve, args=(socket.create_server(("127.0.0.1", 53)),), daemon=True).start()
    environment = {**os.environ, sandbox.NETWORK: network}
    done = subprocess.run([sys.executable, "-c", LOOK_UP], capture_output=True, text=True, env=environment, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize(("network", "output"), [("any", "('10.1.2.3', 80)"), ("peers", "gaierror")])
def test_names_are_found_where_the_network_is_open(tmp_path: Path, network: str, output: str) -> None:
    try:
        subprocess.run([*IN_A_NAMESPACE, "ip", "link"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no namespaces of our own here: {error}")
    command = [*IN_A_NAMESPACE, sys.executable, __file__, network, str(tmp_path / "resolv.conf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert output in done.stdout, (done.stdout, done.stderr)


if __name__ == "__main__":
    print(look_up(sys.argv[1], Path(sys.argv[2])))
