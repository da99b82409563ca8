"""A GET that misses under a hooked prefix."""

import threading
from typing import Any

import pytest
import redis

from .servers import Server, until  # noqa: TID251 (this package is tests/module)


def get_at_once(server: Server, keys: list[str]) -> list[Any]:
    """One connection per key, all waiting at the same time; the held misses are released then."""
    results: dict[int, Any] = {}

    def get(i: int, key: str) -> None:
        results[i] = server.client().get(key)

    threads = [threading.Thread(target=get, args=item) for item in enumerate(keys)]
    for thread in threads:
        thread.start()
    until(lambda: server.info()["waiting_clients"] == len(keys))
    server.order("release")
    for thread in threads:
        thread.join(10)
    return [results[i] for i in range(len(keys))]


def test_a_miss_is_answered_by_the_worker_and_a_stored_answer_by_redis(server: Server) -> None:
    server.hook(mode="store")
    client = server.client()
    assert client.get("answer:1") == b"value of answer:1"
    until(lambda: client.exists("answer:1"))
    assert client.get("answer:1") == b"value of answer:1"
    info = server.info()
    assert info["hook_misses"] == 1
    assert info["hook_hits"] == 1
    assert server.order("misses") == 1


def test_the_worker_hears_user_registration_key_and_command(server: Server) -> None:
    server.hook()
    server.client().get("answer:ä b")
    (miss,) = server.seen("MISS")
    assert miss[2:5] == ["default", "hooks-1", "answer:ä b".encode().decode("latin-1")]
    assert miss[5] == "get"


def test_a_key_past_the_bound_is_not_hooked(server: Server) -> None:
    server.hook()
    longest = b"answer:" + b"x" * (65536 - 7)
    assert server.client().get(longest) == b"value of " + longest
    assert server.client().get(longest + b"x") is None


def test_other_keys_are_not_touched(server: Server) -> None:
    server.hook()
    assert server.client().get("other") is None
    assert server.client().get("answe") is None
    assert server.order("misses") == 0


def test_an_exact_prefix_hooks_one_key_alone(server: Server) -> None:
    server.hook(prefix="answer")
    assert server.client().get("answer") == b"value of answer"
    assert server.client().get("answer:1") is None


def test_equal_misses_at_once_are_computed_once(server: Server) -> None:
    server.hook(mode="hold")
    assert get_at_once(server, ["answer:1"] * 20) == [b"value of answer:1"] * 20
    assert server.order("misses") == 1
    assert server.info()["hook_shared_misses"] == 19


def test_different_misses_are_computed_each(server: Server) -> None:
    server.hook(mode="hold")
    keys = [f"answer:{i}" for i in range(10)]
    assert get_at_once(server, keys) == [b"value of " + k.encode() for k in keys]
    assert server.order("misses") == 10


def test_the_worker_may_say_that_there_is_nothing(server: Server) -> None:
    server.hook(mode="nil")
    assert server.client().get("answer:1") is None
    assert server.client(protocol=3).get("answer:1") is None


def test_a_hit_leaves_the_value_as_it_is_in_memory(server: Server) -> None:
    server.hook()
    client = server.client()
    for value in ("", "12", "-9223372036854775808", "x" * 44, "x" * 45, "x" * 128, "x" * 10_000):
        client.set("answer:1", value)
        before = client.object("encoding", "answer:1"), client.memory_usage("answer:1")
        assert client.get("answer:1") == value.encode()
        assert server.client(protocol=3).get("answer:1") == value.encode()
        assert client.pipeline(transaction=True).get("answer:1").execute() == [value.encode()]
        assert client.eval("return redis.call('GET', KEYS[1])", 1, "answer:1") == value.encode()
        assert (client.object("encoding", "answer:1"), client.memory_usage("answer:1")) == before
    assert server.order("misses") == 0


def test_a_key_of_another_type_is_an_error(server: Server) -> None:
    server.hook()
    server.client().lpush("answer:1", "x")
    assert server.error("GET", "answer:1").startswith("WRONGTYPE")


def test_any_bytes_are_a_key_and_a_value(server: Server) -> None:
    server.hook(mode="store")
    key = b"answer:\x00\xff\r\n*1\r\n"
    assert server.client().get(key) == b"value of " + key
    until(lambda: server.client().exists(key))
    assert server.client().get(key) == b"value of " + key


def test_a_user_needs_the_hook_as_well_and_read_access_is_enough(server: Server) -> None:
    server.hook()
    client = server.client()
    client.execute_command("ACL", "SETUSER", "plain", "on", ">p", "%R~answer:*", "+get")
    client.execute_command("ACL", "SETUSER", "hooked", "on", ">p", "%R~answer:*", "+get", "+shardqa.get")
    assert "shardqa.get" in server.error("GET", "answer:1", login=("plain", "p"))
    assert server.client(username="hooked", password="p").get("answer:1") == b"value of answer:1"
    with pytest.raises(redis.exceptions.NoPermissionError):
        server.client(username="hooked", password="p").get("other:1")


def test_a_tracking_client_gets_the_reply_before_the_invalidation(server: Server) -> None:
    server.hook(mode="store")
    connection = server.send("CLIENT", "TRACKING", "ON", protocol=3)
    assert connection.read_response() == b"OK"
    messages: list[Any] = []
    parser = connection._parser
    parser.set_invalidation_push_handler(lambda message: messages.append(message))
    connection.send_command("GET", "answer:1")
    assert connection.read_response() == b"value of answer:1"
    assert not messages
    until(lambda: server.client().exists("answer:1"))
    connection.send_command("PING")
    assert connection.read_response() == b"PONG"
    assert messages
    assert messages[0][1] == [b"answer:1"]


def test_a_hooked_get_waits_in_its_pipeline_and_keeps_the_order(server: Server) -> None:
    server.hook()
    pipe = server.client().pipeline(transaction=False)
    assert pipe.get("answer:1").set("x", 1).get("answer:2").get("x").execute() == [
        b"value of answer:1",
        True,
        b"value of answer:2",
        b"1",
    ]


def test_an_unregistered_hook_is_gone(server: Server) -> None:
    server.hook()
    server.order("unregister", "hooks-1")
    assert server.client().get("answer:1") is None
    assert server.info()["hooks"] == 0
