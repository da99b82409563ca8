"""The process of pip, outside the sandbox: one that begins before the walls are up and installs what scripts require.

It takes names and versions of packages alone, and wheels alone, so nothing that is installed runs code here. It ends
with the worker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from shardqa.module.worker import sandbox

VARIABLE = "SHARDQA_REQUIREMENTS"  # a folder of wheels, `index` (what pip is set up for) or `no`
FOLDER = sandbox.PACKAGES  # with a folder for each list of requirements
INDEX, NOTHING = "index", "no"
REQUIREMENT = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._, -]+\])?( *[<>=!~]=?=? *[\w.*+!]+,?)*"
)
NAME = re.compile(r"[0-9a-f]{16}(-[0-9]+)?")  # of a folder
SECONDS = 600  # pip may take
MOST = 1 << 16  # bytes of a message
TOLD = 2000  # characters of what pip said
PR_SET_PDEATHSIG = 1
LAST_INHERITED = 5  # descriptors the worker has from the module


class Unwanted(Exception):
    """Not the name of a package, perhaps with versions."""


def check(requirements: Sequence[str]) -> None:
    """Raises Unwanted."""
    for requirement in requirements:
        if not REQUIREMENT.fullmatch(requirement):
            raise Unwanted(
                f"requirement {requirement[:80]!r} is not the name of a package with versions, as in 'redis>=5,<6'; "
                "addresses and options are not taken"
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
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        _serve(theirs, environment)
    theirs.close()
    return ours


def _serve(channel: socket.socket, environment: Mapping[str, str]) -> NoReturn:
    keep = os.dup2(channel.fileno(), LAST_INHERITED + 1 + channel.fileno())
    os.closerange(3, keep)  # the worker's sockets must end with the worker
    os.closerange(keep + 1, 4096)
    _end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sandbox.become_user(environment.get(sandbox.USER, ""))
    os.nice(10)
    way = socket.socket(fileno=keep)
    while message := way.recv(MOST):
        way.send(json.dumps({"error": _answer(json.loads(message), environment.get(VARIABLE, INDEX))}).encode())
    os._exit(0)


def _end_with_parent() -> None:
    sandbox.libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _answer(order: dict[str, Any], source: str) -> str:
    """Empty, or why it failed."""
    name, requirements = str(order["folder"]), [str(one) for one in order["requirements"]]
    try:
        check(requirements)
        if not NAME.fullmatch(name):
            raise Unwanted("the folder's name is none of ours")
        return install(Path(FOLDER).resolve(), name, requirements, source)
    except (Unwanted, OSError, subprocess.SubprocessError) as error:
        return str(error)


def install(folder: Path, name: str, requirements: Sequence[str], source: str) -> str:
    """A folder is there as a whole or not at all. Empty, or what pip said."""
    unfinished = folder / f"{name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    where = [] if source == INDEX else ["--no-index", "--find-links", source]
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-warn-conflicts", "--only-binary", ":all:"]
    command = [sys.executable, "-I", "-m", "pip", "install", *quiet, *where, "--target", str(unfinished), "--"]
    done = subprocess.run(
        [*command, *requirements],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        preexec_fn=_end_with_parent,
    )
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        return " ".join(said.split())[-TOLD:] or f"pip ended with {done.returncode}"
    (unfinished / "requirements.json").write_text(json.dumps(list(requirements)))
    os.replace(unfinished, folder / name)
    return ""
