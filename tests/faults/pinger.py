"""`python -m tests.faults.pinger PORT…`: pings nodes in turn, a process of its own, until its input ends.

Prints a line for each reply: seconds of the monotonic clock, port, milliseconds. A node that does not answer is tried
again on a new connection.
"""

import select
import socket
import sys
import time

EVERY = 0.005  # seconds between two pings
WAIT = 1.0  # for a reply
PING = b"*1\r\n$4\r\nPING\r\n"


def connected(port: int) -> socket.socket | None:
    try:
        opened = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
    except OSError:
        return None
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def ping(opened: socket.socket) -> bool:
    try:
        opened.sendall(PING)
        return opened.recv(100).startswith(b"+PONG")
    except OSError:
        return False


def main() -> None:
    ports = [int(word) for word in sys.argv[1:]]
    connections: dict[int, socket.socket | None] = dict.fromkeys(ports)
    while True:
        for port in ports:
            if select.select([sys.stdin], [], [], EVERY)[0]:
                return
            opened = connections[port] or connected(port)
            begin = time.monotonic()
            if opened is not None and ping(opened):
                connections[port] = opened
                print(f"{begin:.4f} {port} {(time.monotonic() - begin) * 1e3:.3f}", flush=False)
            else:
                connections[port] = None


if __name__ == "__main__":
    main()
