"""Active defragmentation moves tensors together, where Redis was built with the jemalloc that it brings along."""

import pytest
from redis import ResponseError

from .servers import Make, Server, until  # noqa: TID251 (this package is tests/module)

TENSORS, KEPT_OF = 20_000, 8
AT_ONCE = "active-defrag-ignore-bytes 1", "active-defrag-threshold-lower 1", "active-defrag-cycle-min 50"


def scattered(server: Server) -> None:
    """One tensor of each eight is left of many."""
    client = server.client()
    for first in range(0, TENSORS, 1000):
        with client.pipeline(transaction=False) as pipe:
            for number in range(first, first + 1000):
                pipe.execute_command("AI.TENSORSET", f"t{number}", "INT32", 2, 100, "BLOB", blob(number))
            pipe.execute()
    gone = [f"t{number}" for number in range(TENSORS) if number % KEPT_OF]
    client.delete(*gone)


def blob(number: int) -> bytes:
    return number.to_bytes(4, "little") * 200


def wasted(server: Server) -> int:
    return int(server.client().info("memory")["allocator_frag_bytes"])


def can_defragment(server: Server) -> bool:
    try:
        server.client().config_set("activedefrag", "yes")
    except ResponseError:
        return False
    server.client().config_set("activedefrag", "no")
    return True


def test_a_redis_without_it_says_why_and_serves_on(make: Make) -> None:
    server = make(worker=False)
    if can_defragment(server):
        pytest.skip("this redis-server was built with active defragmentation")
    assert "modified Jemalloc" in server.error("CONFIG", "SET", "activedefrag", "yes")
    assert server.client().execute_command("AI.TENSORSET", "t", "INT8", 1, "VALUES", 1) == b"OK"


def test_tensors_are_moved_and_stay_what_they_were(make: Make) -> None:
    server = make(*AT_ONCE, worker=False)
    if not can_defragment(server):
        pytest.skip("this redis-server was built without active defragmentation")
    scattered(server)
    until(lambda: wasted(server) > TENSORS * 400)  # it is counted now and then
    server.client().config_set("activedefrag", "yes")
    until(lambda: wasted(server) < TENSORS * 200)
    client = server.client()
    for number in range(0, TENSORS, KEPT_OF):
        assert client.execute_command("AI.TENSORGET", f"t{number}", "BLOB") == blob(number)
    assert client.execute_command("AI.TENSORGET", "t8", "META") == [b"dtype", b"INT32", b"shape", [2, 100]]
