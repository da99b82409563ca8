"""RG.* of a real node: triggers, events and a reader, with Redis, module and worker as they ship."""

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import READER, echo, registrations, send
from tests.nodes import wait_until

onnx = pytest.importorskip("onnx", reason="the model of these tests is made with onnx")
from onnx import TensorProto, helper  # noqa: E402


def test_a_trigger_is_answered_by_its_name_or_by_a_key(client: Redis) -> None:
    assert send(client, "RG.PYEXECUTE", echo("node-ok")) == "OK"
    assert send(client, "RG.TRIGGER", "node-ok") == ["yes"]
    code = "GB('CommandReader').map(lambda r: r[1]).register(trigger='node-key', mode='async_local')"
    send(client, "RG.PYEXECUTE", code)
    assert send(client, "RG.TRIGGERONKEY", "node-key", "some:key") == ["some:key"]
    assert send(client, "COMMAND GETKEYS", "RG.TRIGGERONKEY", "node-key", "some:key") == ["some:key"]
    with pytest.raises(ResponseError, match="subcommand not found"):
        send(client, "RG.TRIGGER", "node-nobody")


def test_events_right_behind_one_another_reach_their_function_by_themselves(client: Redis) -> None:
    """INFO asks the worker nothing: no other frame takes the events along."""
    code = """
GB().foreach(lambda r: execute('RPUSH', 'node-seen', r['event'] + r['key'] + r['value']['f'])).register(
    prefix='node-heard:*', eventTypes=['hset'], keyTypes=['hash'], mode='async_local')
"""
    assert send(client, "RG.PYEXECUTE", code) == "OK"
    client.set("node-heard:string", "not this")
    for n in range(50):
        client.hset(f"node-heard:{n}", "f", n)
    wait_until(lambda: 50 in triggered(client, "node-heard:*"), "all events have run")
    assert sorted(client.lrange("node-seen", 0, -1)) == sorted(f"hsetnode-heard:{n}{n}" for n in range(50))


def triggered(client: Redis, name: str) -> list[int]:
    """The counts that INFO has of the registrations of this name."""
    lines = [value for value in client.info("shardqa").values() if isinstance(value, dict)]
    return [line["triggered"] for line in lines if line.get("name") == name]


def test_a_reader_in_the_manner_of_the_pattern_answers_and_caches(client: Redis) -> None:
    """Tokens of a document + tokens of a question -> a model -> the best place, from inside an async function."""
    ids, mask = (helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "m"]) for name in ("ids", "mask"))
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", "m"])
    nodes = [
        helper.make_node("Mul", ["ids", "mask"], ["product"]),
        helper.make_node("Cast", ["product"], ["scores"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(nodes, "reader", [ids, mask], [scores])
    blob = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    send(client, "AI.MODELSTORE", "reader", "ONNX", "CPU", "BLOB", blob)
    send(client, "AI.TENSORSET", "tokens:d1", "INT64", 4, "VALUES", 5, 9, 30, 2)
    send(client, "RG.PYEXECUTE", READER, "ID", "reader", "UPGRADE")
    assert client.get("read:d1:1 2 3") == "5"  # the 30, after three tokens of the question and two of the document
    wait_until(lambda: client.exists("read:d1:1 2 3"), "the answer is stored")
    (id,) = (entry["id"] for entry in registrations(client) if "read:*" in entry["args"])
    send(client, "RG.UNREGISTER", id)
    assert client.get("read:d1:1 2 3") == "5"
    assert client.get("read:d1:1 2") is None
