"""REQUIREMENTS as the worker asks its installer for them."""

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shardqa.worker import resp
from shardqa.worker.gears.sessions.requirements import Requirements, RequirementsFailed, base_of


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
        requirements = Requirements(ours, folder=tmp_path)
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
        requirements = Requirements(ours, folder=tmp_path)
        asyncio.run(asyncio.wait_for(ensured(), 20))


def test_a_list_that_sessions_share_has_one_process_until_it_is_installed_anew(tmp_path: Path) -> None:
    def installed(number: int) -> str:
        folder = tmp_path / f"{base}-{number}"
        folder.mkdir()
        (folder / "redis.py").write_text("VALUE = 'old'")
        (folder / "requirements.json").write_text("[]")
        return ensured()

    def ensured() -> str:
        asyncio.run(requirements.ensure(wanted))
        interpreter = requirements.interpreter_of(base)
        return interpreter.folder if interpreter is not None else ""

    path = list(sys.path)
    interpreters: Any = SimpleNamespace(of=lambda folder: SimpleNamespace(folder=folder))
    requirements, wanted = Requirements(None, interpreters, tmp_path), ["redis==3.5.3"]
    base = base_of(wanted)
    assert requirements.interpreter_of(base) is None
    first = installed(1)
    assert first == ensured() == f"{base}-1"
    assert installed(2) == f"{base}-2"
    assert b"redis==3.5.3" in resp.encode(requirements.dump([("redis==3.5.3",)]))
    assert requirements.dump([("redis==3.5.2",)]) == []
    sys.path[:] = path
