"""REQUIREMENTS of scripts: installed once for each list of them, and importable from then on.

What the worker's own environment has counts as installed. Sessions share one interpreter, as in RedisGears; those whose
list brings another version of what is there already have a process of their own (gears/interpreters). Loop's thread,
but for `dump` and `interpreter_of`.
"""

import asyncio
import hashlib
import importlib
import importlib.metadata
import json
import socket
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardqa.worker import resp
from shardqa.worker.gears.interpreters.interpreter import Interpreter, Interpreters
from shardqa.worker.gears.sessions.packages import find, is_in, packages_in
from shardqa.worker.installer import FOLDER, MAX_MESSAGE

if TYPE_CHECKING:
    from packaging.requirements import Requirement  # imported where it is used: a twelfth of a worker's start

MARK = "# shardqa: requirements: "  # begins a line of a stored session


class RequirementsFailed(Exception):
    """Requirements can't be installed; the text is pip's."""


class Requirements:
    def __init__(
        self, installer: socket.socket | None, interpreters: Interpreters | None = None, folder: Path | None = None
    ) -> None:
        self._installer = installer
        self._interpreters = interpreters
        self._apart: dict[str, str] = {}  # the folders of lists that need an interpreter, by base
        self._lent: list[str] = []  # the same, as the last of sys.path: what else came with them is there for all
        self._folder = (folder or Path(FOLDER)).resolve()
        self._active: dict[str, tuple[str, Sequence[str]]] = {}  # by base: the folder, if there is one, and the list
        self._path = [path for path in sys.path if Path(path).parent != self._folder]  # of the worker's own packages
        self._installing = asyncio.Lock()

    async def ensure(self, requirements: Sequence[str], force: bool = False) -> None:
        """Installs requirements that are missing. Raises RequirementsFailed."""
        if not requirements:
            return
        base = base_of(requirements)
        missing = [requirement for requirement in requirements if force or not _is_there(requirement, self._path)]
        if (force or self._newest(base) is None) and missing:
            async with self._installing:  # what is there waits for no pip
                if force or self._newest(base) is None:
                    await self._install(f"{base}-{time.time_ns()}", missing)
        name = self._newest(base)
        if name is not None:
            self._activate(name, base)
        self._active[base] = name or base, requirements

    def dump(self, used: Iterable[Sequence[str]]) -> list[Any]:
        """Returns the reply of RG.PYDUMPREQS: the lists that sessions use."""
        active = [self._active[base] for base in dict.fromkeys(map(base_of, used)) if base in self._active]
        same = {"IsDownloaded": "yes", "IsInstalled": "yes", "CompiledOs": sys.platform}
        every = [(self._folder / folder, name) for folder, names in active for name in names]
        return [
            resp.pairs(GearReqVersion=1, Name=name, **same, Wheels=self._wheels_of(folder, name), Path=str(folder))
            for folder, name in every
        ]

    def _wheels_of(self, folder: Path, requirement: str) -> list[str]:
        if folder.is_dir():
            return [_wheel(one) for one in importlib.metadata.distributions(path=[str(folder)])]
        own = _distribution(requirement, self._path)
        return [] if own is None else [_wheel(own)]

    def _newest(self, base: str) -> str | None:
        paths = [path for path in self._folder.glob(f"{base}-*") if (path / "requirements.json").exists()]
        return max(paths, key=lambda path: int(path.name.partition("-")[2])).name if paths else None

    async def _install(self, name: str, requirements: Sequence[str]) -> None:
        if self._installer is None:
            raise RequirementsFailed("nothing may be installed here: the module was loaded with REQUIREMENTS_DIR no")
        message = json.dumps({"folder": name, "requirements": list(requirements)}).encode()
        if len(message) > MAX_MESSAGE:
            raise RequirementsFailed(f"a list of {len(message)} bytes is too long; {MAX_MESSAGE} are taken")
        self._installer.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._installer, message)
            reason = await self._reply(loop, self._installer, name)
        except OSError as error:
            reason = str(error)
        if reason:
            what = " ".join(requirements)[:200]
            raise RequirementsFailed(f"could not satisfy requirements: pip could not install {what}: {reason}")

    @staticmethod
    async def _reply(loop: asyncio.AbstractEventLoop, installer: socket.socket, name: str) -> str:
        """Reads the installer's reply: why it failed, or nothing; skips replies for clients that left."""
        while reply := await loop.sock_recv(installer, MAX_MESSAGE):
            answer = json.loads(reply)
            if answer["folder"] == name:
                return str(answer["error"])
        return "the installer has ended; it comes back with the next worker"

    def _activate(self, name: str, base: str) -> None:
        importlib.invalidate_caches()
        folder = self._folder / name
        if str(folder) in sys.path:
            return
        others = [path for path in sys.path if Path(path).parent == self._folder and path not in self._lent]
        packages, path = packages_in(folder), [*self._path, *others]
        own = {top for top, package in packages.items() if not is_in(top, package, self._path)}
        if any(find(top, path) and not is_in(top, packages[top], others) for top in own):
            self._apart[base] = name
            self._lent.append(str(folder))
            sys.path.append(str(folder))
        else:
            self._apart.pop(base, None)
            sys.path.insert(len(sys.path) - len(self._lent), str(folder))

    def interpreter_of(self, base: str) -> Interpreter | None:
        """Returns the interpreter of the list with this base; None for the worker itself. Any thread."""
        folder = self._apart.get(base)
        if folder is None:
            return None
        if self._interpreters is None:
            raise RuntimeError(f"{folder} has other versions than this process; here they can't have one of their own")
        return self._interpreters.of(folder)


def base_of(requirements: Sequence[str]) -> str:
    """Returns the beginning of the names of a list's folders."""
    return hashlib.sha256(json.dumps(sorted(requirements)).encode()).hexdigest()[:16]


def _is_there(requirement: str, path: Sequence[str]) -> bool:
    """Returns whether the path has the requirement, with the dependencies of its extras."""
    from packaging.requirements import Requirement

    own = _distribution(requirement, path)
    if own is None:
        return False
    extras = Requirement(requirement).extras
    of_extras = [one for one in map(Requirement, own.requires or ()) if _is_of(one, extras)]
    return all(_is_there(str(one).partition(";")[0], path) for one in of_extras)


def _is_of(dependency: "Requirement", extras: Collection[str]) -> bool:
    """Returns whether only one of these extras brings the dependency."""
    marker = dependency.marker
    return (
        marker is not None and not marker.evaluate({"extra": ""}) and any(marker.evaluate({"extra": e}) for e in extras)
    )


def _distribution(requirement: str, path: Sequence[str]) -> importlib.metadata.Distribution | None:
    """Returns the distribution on the path that meets a requirement; its extras do not count."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        wish = Requirement(requirement)
    except InvalidRequirement:
        return None
    if wish.url:
        return None
    for one in importlib.metadata.distributions(name=wish.name, path=list(path)):
        return one if wish.specifier.contains(one.version, prereleases=True) else None
    return None


def _wheel(distribution: importlib.metadata.Distribution) -> str:
    """Returns the file name of the wheel that a distribution came from."""
    lines = (distribution.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")]
    name = distribution.name.replace("-", "_")
    return f"{name}-{distribution.version}-{tags[0] if tags else 'py3-none-any'}.whl"


# ---- with a stored session ----


def marked(requirements: Sequence[str], code: str) -> str:
    """Returns the script with its requirements in a comment as first line: it stays a script of Python."""
    return f"{MARK}{json.dumps(list(requirements))}\n{code}" if requirements else code


def unmarked(code: str) -> tuple[tuple[str, ...], str]:
    if not code.startswith(MARK):
        return (), code
    first, _, rest = code.partition("\n")
    return tuple(json.loads(first.removeprefix(MARK))), rest
