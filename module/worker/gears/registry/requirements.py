"""REQUIREMENTS of scripts: installed once for each list of them, and importable from then on.

All sessions share one interpreter, as in RedisGears: the worker's own packages come first, then those of the sessions
in the order in which they came. Loop's thread, but for `dump`.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shardqa.module.worker import resp
from shardqa.module.worker.installer import FOLDER, MOST, Unwanted, check

MARK = "# shardqa: requirements: "  # begins a line of a stored session


class RequirementsFailed(Exception):
    """Requirements that can't be installed; the text is pip's."""


class Requirements:
    def __init__(self, installer: socket.socket | None, folder: Path | None = None) -> None:
        self._installer = installer
        self._folder = (folder or Path(FOLDER)).resolve()
        self._active: dict[str, tuple[str, ...]] = {}  # name of a folder -> what was required
        self._installing = asyncio.Lock()

    async def ensure(self, requirements: Sequence[str], force: bool = False) -> None:
        """Raises RequirementsFailed."""
        if not requirements:
            return
        try:
            check(requirements)
        except Unwanted as error:
            raise RequirementsFailed(str(error)) from None
        async with self._installing:
            base = hashlib.sha256(json.dumps(sorted(requirements)).encode()).hexdigest()[:16]
            name = None if force else self._newest(base)
            if name is None:
                name = f"{base}-{time.time_ns()}"
                await self._install(name, requirements)
            self._activate(name, requirements)

    def dump(self) -> list[Any]:
        """As RG.PYDUMPREQS shows them."""
        return [
            resp.pairs(
                GearReqVersion=1,
                Name=requirement,
                IsDownloaded="yes",
                IsInstalled="yes",
                CompiledOs=sys.platform,
                Wheels=_wheels(self._folder / name),
            )
            for name, requirements in self._active.items()
            for requirement in requirements
        ]

    def _newest(self, base: str) -> str | None:
        found = [path for path in self._folder.glob(f"{base}-*") if (path / "requirements.json").exists()]
        return max(found, key=lambda path: int(path.name.partition("-")[2])).name if found else None

    async def _install(self, name: str, requirements: Sequence[str]) -> None:
        if self._installer is None:
            raise RequirementsFailed("nothing may be installed here: the module was loaded with REQUIREMENTS_DIR no")
        message = json.dumps({"folder": name, "requirements": list(requirements)}).encode()
        if len(message) > MOST:
            raise RequirementsFailed(f"a list of {len(message)} bytes is too long; {MOST} are taken")
        self._installer.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._installer, message)
            reply = await loop.sock_recv(self._installer, MOST)
        except OSError as error:
            reply, failure = b"", str(error)
        else:
            failure = "the installer has ended; it comes back with the next worker"
        reason = str(json.loads(reply)["error"]) if reply else failure
        if reason:
            raise RequirementsFailed(f"pip could not install {' '.join(requirements)[:200]}: {reason}")

    def _activate(self, name: str, requirements: Sequence[str]) -> None:
        path = str(self._folder / name)
        self._active[name] = tuple(requirements)
        if path not in sys.path:
            sys.path.append(path)
        importlib.invalidate_caches()


def _wheels(folder: Path) -> list[str]:
    """Returns the file names of wheels, from what they left."""
    wheels = []
    for info in sorted(folder.glob("*.dist-info")):
        tags = [
            line.removeprefix("Tag: ") for line in (info / "WHEEL").read_text().splitlines() if line.startswith("Tag: ")
        ]
        wheels.append(f"{info.name.removesuffix('.dist-info')}-{tags[0] if tags else 'py3-none-any'}.whl")
    return wheels


# ---- with a stored session ----


def marked(requirements: Sequence[str], code: str) -> str:
    """A script of Python all the same: the line is a comment."""
    return f"{MARK}{json.dumps(list(requirements))}\n{code}" if requirements else code


def unmarked(code: str) -> tuple[tuple[str, ...], str]:
    if not code.startswith(MARK):
        return (), code
    first, _, rest = code.partition("\n")
    return tuple(json.loads(first.removeprefix(MARK))), rest
