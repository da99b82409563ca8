"""REQUIREMENTS as the worker asks its installer for them."""

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path

from shardqa.module.worker.gears.registry.requirements import Requirements, RequirementsFailed


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
