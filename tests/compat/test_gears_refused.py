"""What RedisGears has and this has not says so."""

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import send


@pytest.mark.parametrize("command", [
    "DUMPPLUGINS", "PYEXPORTREQ", "PYIMPORTREQ", "PYFREEINTERPRETER", "NETWORKTEST", "HELLO", "CLUSTERSET",
    "PYEXECUTEREMOTE",
])  # fmt: skip
def test_commands_of_redisgears_inside_are_unknown(client: Redis, command: str) -> None:
    with pytest.raises(ResponseError, match="unknown command"):
        send(client, f"RG.{command}", "x")


def test_thread_pools_of_plugins_are_not_there(client: Redis) -> None:
    with pytest.raises(ResponseError, match="registerTE"):
        send(client, "RG.PYEXECUTE", "registerTE('pool')")
