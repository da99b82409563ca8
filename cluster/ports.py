"""Finds and checks free TCP ports on loopback."""

import random
import socket
from collections.abc import Iterable

from shardqa.errors import SetupError

HOST = "127.0.0.1"
HIGHEST = 65535
RANDOM_RANGE = (10_000, 22_000)  # with the bus 10,000 above still below Linux' ephemeral ports (32768..)


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((HOST, port))
        except OSError:
            return False
        return True


def check_free(ports: Iterable[int], purpose: str, option: str) -> None:
    """Raises SetupError naming the ports in use, what they were wanted for, and the option that changes them."""
    numbers = list(ports)
    beyond = [p for p in numbers if not 0 < p <= HIGHEST]
    if beyond:
        raise SetupError(f"port {beyond[0]} for {purpose} is outside 1..{HIGHEST}; choose others with {option}")
    busy = [p for p in numbers if not is_free(p)]
    if busy:
        names = ", ".join(map(str, busy))
        raise SetupError(
            f"port{'s' if len(busy) > 1 else ''} {names} on {HOST} {'are' if len(busy) > 1 else 'is'} in use, "
            f"wanted for {purpose}; stop what listens there, or choose another with {option}"
        )


def bus_offset(ports: Iterable[int], usual: int) -> int:
    """Returns the usual offset of bus ports, or the next one that leaves them all free, or else the usual one."""
    numbers = list(ports)
    beyond = range(usual, HIGHEST - max(numbers), 1_000)
    return next((offset for offset in beyond if all(is_free(port + offset) for port in numbers)), usual)


def random_block(size: int, bus_offset: int) -> int:
    """Returns the first of `size` neighbouring free ports, bus ports too. Raises SetupError if there are none."""
    for _ in range(200):
        base = random.randrange(*RANDOM_RANGE)
        ports = range(base, base + size)
        if all(is_free(p) and is_free(p + bus_offset) for p in ports):
            return base
    raise SetupError(f"no {size} neighbouring free ports found in {RANDOM_RANGE[0]}..{RANDOM_RANGE[1]}; close some")
