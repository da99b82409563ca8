"""The process of pip, outside the sandbox: one that begins before the walls are up and installs what scripts require.

It takes names and versions of packages alone, and wheels alone, so nothing that is installed runs code here. With
REQUIREMENTS_SDIST source packages and git+https addresses are taken, too: their setup is code, so pip then runs behind
walls that leave it its own folder and the network. It ends with the worker.
"""

import importlib.metadata
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from shardqa.worker import sandbox

VARIABLE = "SHARDQA_REQUIREMENTS"  # a folder of wheels, `index` (what pip is set up for) or `no`
SOURCES = "SHARDQA_REQUIREMENTS_SDIST"  # `yes`: packages that must be built, too
FOLDER = sandbox.PACKAGES  # with a folder for each list of requirements
INDEX, NOTHING = "index", "no"
REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._, -]+\])?( *[<>=!~]=?=? *[\w.*+!]+,?)*"
)
ADDRESS = re.compile(r"([A-Za-z0-9._-]+ ?@ ?)?git\+https://[A-Za-z0-9._~:@%/+-]+(#[A-Za-z0-9._&=/-]+)?")
NAME = re.compile(r"[0-9a-f]{16}(-[0-9]+)?")  # of a folder
SECONDS = 600  # pip may take
WITH_SOURCES = "are taken where the module is loaded with REQUIREMENTS_SDIST yes"
MAX_MESSAGE = 1 << 16  # bytes of a message
TOLD = 2000  # characters of what pip said
PR_SET_PDEATHSIG = 1
LAST_INHERITED = 5  # descriptors the worker has from the module


class Unwanted(Exception):
    """The word is no name of a package, with versions or without."""


def check(requirements: Sequence[str], sources: bool = False) -> None:
    """Raises Unwanted."""
    for requirement in requirements:
        if REQUIREMENT.fullmatch(requirement) or (sources and ADDRESS.fullmatch(requirement)):
            continue
        address = ADDRESS.fullmatch(requirement)
        raise Unwanted(
            f"requirement {requirement[:80]!r} is not the name of a package with versions, as in 'redis>=5,<6'; "
            + (f"addresses {WITH_SOURCES}" if address else "other addresses and options are not taken")
        )


def start(environment: Mapping[str, str]) -> socket.socket | None:
    """The way to the installer; None where nothing may be installed. Before any thread begins."""
    if environment.get(VARIABLE, INDEX) == NOTHING:
        return None
    try:
        os.makedirs(FOLDER, exist_ok=True)
    except OSError as error:
        print(f"installer: {os.getcwd()}/{FOLDER} can't be made: {error}", file=sys.stderr)
        return None
    return begin(_serve, environment)


def begin(
    serve: Callable[[socket.socket, Mapping[str, str]], NoReturn], environment: Mapping[str, str]
) -> socket.socket:
    """Begins a process that serves a socket, and returns the way to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        serve(keep_alone(theirs), environment)
    theirs.close()
    return ours


def keep_alone(channel: socket.socket) -> socket.socket:
    """Closes all but one socket in a process that was just begun, and has it end with its parent alone."""
    keep = os.dup2(channel.fileno(), LAST_INHERITED + 1 + channel.fileno())
    os.closerange(3, keep)  # the worker's sockets must end with the worker
    os.closerange(keep + 1, 4096)
    channel.detach()
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return socket.socket(fileno=keep)


def _serve(way: socket.socket, environment: Mapping[str, str]) -> NoReturn:
    sandbox.become_user(environment.get(sandbox.USER, ""))
    os.nice(10)
    source, sources = environment.get(VARIABLE, INDEX), environment.get(SOURCES) == "yes"
    while message := way.recv(MAX_MESSAGE):
        order = json.loads(message)
        way.send(json.dumps({"folder": order["folder"], "error": _answer(order, source, sources)}).encode())
    os._exit(0)


def end_with_parent() -> None:
    sandbox.libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _answer(order: dict[str, Any], source: str, sources: bool) -> str:
    """Returns why it failed, or nothing."""
    name, requirements = str(order["folder"]), [str(one) for one in order["requirements"]]
    try:
        check(requirements, sources)
        if sources and not sandbox.has_landlock():
            raise Unwanted(
                "REQUIREMENTS_SDIST yes needs Landlock, which this kernel has not; load the module without it"
            )
        if not NAME.fullmatch(name):
            raise Unwanted("the folder's name is none of ours")
        return install(Path(FOLDER).resolve(), name, requirements, source, sources)
    except (Unwanted, OSError, subprocess.SubprocessError) as error:
        return str(error)


def install(folder: Path, name: str, requirements: Sequence[str], source: str, sources: bool = False) -> str:
    """A folder is there as a whole or not at all. Empty, or what pip said.

    What the worker has is asked for in the worker's version first: so both can be one copy.
    """
    draft, building = folder / f"{name}.unfinished", folder / f"{name}.building"
    for path in (draft, building):
        shutil.rmtree(path, ignore_errors=True)
    building.mkdir()
    where = [] if source == INDEX else ["--no-index", "--find-links", source]
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-warn-conflicts"]
    options += ["--no-cache-dir"] if sources else ["--only-binary", ":all:"]
    command = [sys.executable, "-I", "-m", "pip", "install", *options, *where, "--target", str(draft)]
    own = building / "constraints.txt"
    own.write_text("".join(f"{line}\n" for line in _own_versions(requirements)))
    try:
        for more in (["--constraint", str(own)], []):
            process = _pip([*command, *more, "--", *requirements], building, source if sources else None)
            if process.returncode == 0:
                break
            shutil.rmtree(draft, ignore_errors=True)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    if process.returncode != 0:
        text = " ".join((process.stderr or process.stdout).decode("utf-8", "replace").split())[-TOLD:]
        hint = "" if sources else f" (source packages {WITH_SOURCES})"
        return f"{text}{hint}" if text else f"pip ended with {process.returncode}"
    (draft / "requirements.json").write_text(json.dumps(list(requirements)))
    os.replace(draft, folder / name)
    return ""


def _pip(command: list[str], building: Path, source: str | None) -> subprocess.CompletedProcess[bytes]:
    """Runs pip; behind the walls of builds where a `source` of packages is named. `building` then is its HOME."""
    own = {**os.environ, "HOME": str(building), "TMPDIR": str(building), "GIT_CONFIG_NOSYSTEM": "1"} if source else None
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        cwd=building,
        env=own,
        preexec_fn=partial(_confine_build, building.parent, source) if source else end_with_parent,
    )


def _confine_build(folder: Path, source: str) -> None:
    end_with_parent()
    sandbox.confine_build(str(folder), source)


def _own_versions(requirements: Sequence[str]) -> list[str]:
    """Returns the versions of the worker's packages, without those that are required by name."""
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-") for requirement in requirements}
    own = {(one.name or "").lower().replace("_", "-"): one.version for one in importlib.metadata.distributions()}
    return [f"{name}=={version}" for name, version in sorted(own.items()) if name and name not in names]
