"""On a bare machine `make` asks for packages, and says what to do where it can't install them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "install-packages"
TOOLS = ("sh", "sed", "cat", "chmod", "rm", "env")  # what the script itself needs; the rest is "missing"


class Machine:
    """A PATH of its own, with a package manager that only writes down what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "asked"
        self.policy = folder / "policy-rc.d"
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.bin / tool).symlink_to(found)

        self.add("python3", f'exec "{sys.executable}" "$@"')

    def add(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def with_apt(self) -> "Machine":
        self.add("apt-get", f'echo "$@" >> {self.calls}; [ -e {self.policy} ] && echo guarded >> {self.calls}; exit 0')
        return self

    def as_user(self, number: int) -> "Machine":
        self.add("id", f"echo {number}")
        return self

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": str(self.bin), "POLICY_RC_D": str(self.policy), "PYTHON": "python3"}
        return subprocess.run([str(SCRIPT), *words], env=env, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_is_there_is_not_installed_again(bare: Machine) -> None:
    bare.with_apt().as_user(0)
    for name, says in (("redis-server", "Redis server v=7.0.15 sha=0"), ("redis-cli", ""), ("make", "")):
        bare.add(name, f"echo '{says}'")
    assert bare.run("redis", "make", "python").returncode == 0
    assert not bare.calls.exists()


def test_valkey_is_taken_where_there_is_no_redis(bare: Machine) -> None:
    bare.with_apt().as_user(0)
    bare.add("valkey-server", "echo 'Valkey server v=8.0.1 sha=0'")
    bare.add("valkey-cli", "")
    assert bare.run("redis").returncode == 0
    assert not bare.calls.exists()


def test_missing_packages_are_installed_without_starting_services(bare: Machine) -> None:
    bare.with_apt().as_user(0)
    process = bare.run("redis", "make", "chromium")
    asked = bare.calls.read_text()
    assert "redis-server redis-tools make chromium-headless-shell" in asked
    assert asked.count("guarded") == 2  # while apt-get ran, services were kept from starting
    assert not bare.policy.exists()
    assert "installing redis-server redis-tools make chromium-headless-shell" in process.stdout
    assert "too old" in process.stderr  # the stub installed nothing


def test_redis_6_is_replaced(bare: Machine) -> None:
    bare.with_apt().as_user(0)
    bare.add("redis-server", "echo 'Redis server v=6.0.16 sha=0'")
    bare.add("redis-cli", "")
    bare.run("redis")
    assert "install -y -qq --no-install-recommends redis-server\n" in bare.calls.read_text()


def test_a_policy_of_the_machine_stays(bare: Machine) -> None:
    bare.with_apt().as_user(0)
    bare.policy.write_text("mine")
    bare.run("make")
    assert bare.policy.read_text() == "mine"


@pytest.mark.parametrize("has_apt", [True, False])
def test_without_root_or_apt_it_says_what_to_install(bare: Machine, has_apt: bool) -> None:
    if has_apt:
        bare.with_apt()
    bare.as_user(1000)
    done = bare.run("redis", "make")
    assert done.returncode == 1
    assert "install these yourself and try again: redis-server redis-tools make" in done.stderr
    assert not bare.calls.exists()


def test_an_old_python_is_refused_with_what_to_do(bare: Machine) -> None:
    bare.add("python3", "exit 1")
    done = bare.run("python")
    assert done.returncode == 1
    assert "not Python 3.11 or newer" in done.stderr


def test_bare_make_explains_every_verb() -> None:
    done = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, env=os.environ, check=True)
    for verb in ("build", "run", "test", "test-all", "test-one", "lint", "asan", "bench", "clean"):
        assert f"  make {verb} " in done.stdout


def test_continuous_integration_runs_all_tests() -> None:
    assert {"make test", "exec make test-rest"} <= set((ROOT / ".ci" / "run").read_text().splitlines())
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
