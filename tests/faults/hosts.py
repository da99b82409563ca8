"""Hosts of their own on one machine: network namespaces behind a router, which can cut any from any other.

with Hosts(3) as hosts:            # root only
    hosts.command(0)               # what a program on the first host begins with
    hosts.cut([0], [1, 2])         # packets between them are dropped, both ways
    hosts.drop([0], [1, 2])        # those that it sends, not those that it gets
    hosts.slow(0, "500kbit")       # both ways; what does not pass at once waits
    hosts.heal()

Each host is joined to a namespace that routes, by a pair of its own; this machine is one host more (`HERE`). A bridge
would do with less, but what crosses it is up to the machine's own firewall.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from random import Random
from typing import Self

HERE = -1  # the machine itself, where clients are
QUEUE_SECONDS = 3  # that a packet waits at a slow host, at most; then it is dropped


class NoNamespaces(Exception):
    """This machine or user can't make them."""


class Hosts:
    def __init__(self, count: int) -> None:
        self._count = count
        self._chance = Random(os.urandom(4))

    def __enter__(self) -> Self:
        """Raises NoNamespaces."""
        self._name = f"sq{self._chance.randrange(16**6):06x}"
        self._net = f"10.{self._chance.randrange(128, 255)}"  # other tests of this machine have others
        self._router = f"{self._name}r"
        try:
            self._make()
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            self.__exit__()
            raise NoNamespaces(said.strip()) from None
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(FileNotFoundError):
            names = [self._router, *map(self._namespace, range(self._count))]
            for command in (f"link del {self._name}h", *(f"netns del {name}" for name in names)):
                subprocess.run(["ip", *command.split()], capture_output=True, check=False)

    def address(self, host: int) -> str:
        return f"{self._net}.{host + 1}.2"

    def command(self, host: int) -> list[str]:
        """Begins a command line that runs there."""
        return ["nsenter", f"--net=/run/netns/{self._namespace(host)}"]

    def cut(self, some: Sequence[int], others: Sequence[int]) -> None:
        self.drop(some, others)
        self.drop(others, some)

    def drop(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        for source, target in product(sources, targets):
            rule = f"rule add from {self.address(source)} to {self.address(target)} blackhole"
            _ip(f"-n {self._router} {rule}")

    def slow(self, host: int, rate: str) -> None:
        for where, device in self._ends(host):
            _tc(f"-n {where} qdisc add dev {device} root tbf rate {rate} burst 16kb latency {QUEUE_SECONDS}s")

    def heal(self) -> None:
        """All that were cut, or slow."""
        for where, device in (end for host in range(self._count) for end in self._ends(host)):
            with suppress(subprocess.CalledProcessError):  # it is not slow
                _tc(f"-n {where} qdisc del dev {device} root")
        rules = subprocess.run(
            ["ip", "-n", self._router, "rule"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for line in rules:
            if "blackhole" in line:
                _ip(f"-n {self._router} rule del pref {line.partition(':')[0]}")

    def _ends(self, host: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Namespace and device, for what the host gets and what it sends."""
        return (self._router, f"{self._name}{host + 1}"), (self._namespace(host), "eth0")

    def _namespace(self, host: int) -> str:
        return f"{self._name}{host}"

    def _make(self) -> None:
        _ip(f"netns add {self._router}")
        _ip(f"-n {self._router} link set lo up")
        forward = ["nsenter", f"--net=/run/netns/{self._router}", "sysctl", "-qw", "net.ipv4.ip_forward=1"]
        subprocess.run(forward, check=True, capture_output=True, text=True)
        for host in range(self._count):
            _ip(f"netns add {self._namespace(host)}")
            self._join(host, f"netns {self._namespace(host)}", f"-n {self._namespace(host)} ", "eth0")
            _ip(f"-n {self._namespace(host)} route add default via {self._net}.{host + 1}.1")
        self._join(HERE, "", "", f"{self._name}h")
        _ip(f"route add {self._net}.0.0/16 via {self._net}.0.1")

    def _join(self, host: int, where: str, inside: str, device: str) -> None:
        """A pair of devices: one at the router, one at the host."""
        at_router = f"{self._name}{host + 1}"
        _ip(f"link add {at_router} netns {self._router} type veth peer name {device} {where}")
        _ip(f"{inside}addr add {self.address(host)}/24 dev {device}")
        _ip(f"{inside}link set lo up")
        _ip(f"{inside}link set {device} up")
        _ip(f"-n {self._router} addr add {self._net}.{host + 1}.1/24 dev {at_router}")
        _ip(f"-n {self._router} link set {at_router} up")


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)


def _tc(words: str) -> None:
    subprocess.run(["tc", *words.split()], check=True, capture_output=True, text=True)
