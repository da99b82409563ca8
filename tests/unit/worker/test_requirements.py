"""REQUIREMENTS as the worker asks its installer for them."""

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from shardqa.worker import resp
from shardqa.worker.gears.sessions.private_imports import ACTIVE, PrivateImports
from shardqa.worker.gears.sessions.requirements import Requirements, RequirementsFailed, _base


async def ask(installer: socket.socket, requirements: Requirements, name: str, error: str) -> str:
    """Returns what a client is told when the installer replies `error`; it has left where that is empty."""
    request = asyncio.create_task(requirements.ensure([name]))
    order = json.loads(await asyncio.get_running_loop().sock_recv(installer, 1 << 16))
    if not error:
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        error = "of one who left"
    installer.send(json.dumps({"folder": order["folder"], "error": error}).encode())
    try:
        await request
    except (RequirementsFailed, asyncio.CancelledError) as fault:
        return str(fault)
    return ""


def test_the_reply_for_a_client_that_left_is_no_one_elses(tmp_path: Path) -> None:
    async def both() -> str:
        await ask(theirs, requirements, "sqa_left", "")
        return await ask(theirs, requirements, "sqa_stayed", "no such package")

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        requirements = Requirements(ours, tmp_path)
        assert asyncio.run(both()).endswith("sqa_stayed: no such package")


def test_what_is_there_waits_for_no_pip_and_extras_of_it_need_none(tmp_path: Path) -> None:
    async def ensured() -> None:
        building = asyncio.create_task(requirements.ensure(["sqa_slow"]))
        await asyncio.get_running_loop().sock_recv(theirs, 1 << 16)
        await requirements.ensure(["redis[hiredis]>=5", "numpy"])
        building.cancel()

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        requirements = Requirements(ours, tmp_path)
        asyncio.run(asyncio.wait_for(ensured(), 20))


def test_a_list_that_sessions_share_is_imported_once_and_listed_while_one_has_it(tmp_path: Path) -> None:
    def installed(number: int) -> PrivateImports | None:
        folder = tmp_path / f"{base}-{number}"
        folder.mkdir()
        (folder / "redis.py").write_text("VALUE = 'old'")
        (folder / "requirements.json").write_text("[]")
        return ensured()

    def ensured() -> PrivateImports | None:
        asyncio.run(requirements.ensure(wanted))
        return ACTIVE.get(base)

    requirements, wanted = Requirements(None, tmp_path), ["redis==3.5.3"]
    base = _base(wanted)
    first = installed(1)
    assert first is not None
    assert first is ensured()
    assert first is not installed(2)
    assert b"redis==3.5.3" in resp.encode(requirements.dump([("redis==3.5.3",)]))
    assert requirements.dump([("redis==3.5.2",)]) == []
    del ACTIVE[base]


FINDER = """
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

class Finder:
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "sqa_far" else None

    def load_module(self, name):  # the way of loaders before Python 3.4, which httpimport 0.7.2 still goes
        sys.modules[name] = module = ModuleType(name)
        return module

finder = Finder()
"""


def test_a_package_whose_machine_code_can_be_there_once_says_so_to_the_script(tmp_path: Path) -> None:
    package, info = tmp_path / "numpy", tmp_path / "numpy-0.1.dist-info"
    for folder, name, content in (
        (package, "__init__.py", "raise TypeError('only one of me')"), (package, "core.so", ""),
        (info, "METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n"),
        (info, "RECORD", "numpy/__init__.py,,\n"),
    ):  # fmt: skip
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    imports = PrivateImports("list", tmp_path, frozenset(["numpy"]))
    with pytest.raises(TypeError, match="only one of me"):  # another package may have a way around it
        imports.import_("numpy", {"__name__": "other"})
    with pytest.raises(ImportError, match=r"^numpy 0.1 can't be loaded beside the worker's 2.*: require numpy==2"):
        imports.import_("numpy", {"__name__": "__main__"})


@pytest.mark.filterwarnings("ignore:Finder:ImportWarning")
def test_a_private_package_may_bring_modules_that_are_not_in_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sqa_finder.py").write_text(FINDER)
    imports = PrivateImports("list", tmp_path, frozenset({"sqa_finder"}))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, imports.import_("sqa_finder").finder])
    assert imports.import_("sqa_far") is sys.modules.pop("sqa_far")
