"""RG.* of a real node: scripts, triggers, hooked GETs and events, with Redis, module and worker as they ship."""

import threading
from collections.abc import Callable

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import ANSWERS, READER, echo, send
from tests.nodes import Node, wait_until

onnx = pytest.importorskip("onnx", reason="the model of these tests is made with onnx")
from onnx import TensorProto, helper  # noqa: E402


def execute(client: Redis, code: str, *words: str) -> object:
    return send(client, "RG.PYEXECUTE", code, *words)


def test_a_script_that_registers_gets_ok(client: Redis) -> None:
    assert execute(client, echo("node-ok")) == "OK"
    assert send(client, "RG.TRIGGER", "node-ok") == ["yes"]


def test_an_unknown_trigger_is_an_error(client: Redis) -> None:
    with pytest.raises(ResponseError, match="subcommand not found"):
        send(client, "RG.TRIGGER", "node-nobody")


def test_a_trigger_on_key_is_routed_by_its_key(client: Redis) -> None:
    execute(client, "GB('CommandReader').map(lambda r: r[1]).register(trigger='node-key', mode='async_local')")
    assert send(client, "RG.TRIGGERONKEY", "node-key", "some:key") == ["some:key"]
    assert send(client, "COMMAND GETKEYS", "RG.TRIGGERONKEY", "node-key", "some:key") == ["some:key"]


def test_events_right_behind_one_another_reach_their_function_by_themselves(client: Redis) -> None:
    """INFO asks the worker nothing: no other frame takes the events along."""
    code = "GB().foreach(lambda r: None).register(prefix='node-heard:*', readValue=False, mode='async_local')"
    assert execute(client, code) == "OK"
    for n in range(50):
        client.set(f"node-heard:{n}", n)
    wait_until(lambda: 50 in triggered(client, "node-heard:*"), "all events have run")


def triggered(client: Redis, name: str) -> list[int]:
    """Of the registrations of this name, as INFO tells it."""
    lines = [value for value in client.info("shardqa").values() if isinstance(value, dict)]
    return [line["triggered"] for line in lines if line.get("name") == name]


def test_a_run_reads_the_keyspace(client: Redis) -> None:
    for n in range(3):
        client.hset(f"node-run:{n}", mapping={"n": n})
    code = "GB().filter(lambda r: r['value']['n'] != '1').map(lambda r: r['key']).run('node-run:*', mode='async_local')"
    results, errors = send(client, "RG.PYEXECUTE", code)
    assert (sorted(results), errors) == (["node-run:0", "node-run:2"], [])


def test_a_run_that_fails_on_a_record_gives_results_and_errors(client: Redis) -> None:
    client.set("node-part:1", "1")
    client.set("node-part:0", "0")
    results, errors = send(
        client, "RG.PYEXECUTE", "GB().map(lambda r: 1 // int(r['value'])).run('node-part:*', mode='async_local')"
    )
    assert results == ["1"]
    assert "ZeroDivisionError" in errors[0]


def test_a_miss_of_a_hooked_key_is_answered_by_its_function_and_then_a_plain_hit(client: Redis) -> None:
    execute(client, ANSWERS.replace("{prefix}", "node-answer:"))
    assert client.get("node-answer:1") == "answer of node-answer:1"
    wait_until(lambda: client.ttl("node-answer:1") > 0, "the answer is stored")
    assert client.get("node-answer:1") == "answer of node-answer:1"
    assert client.get("node-other:1") is None


@pytest.mark.parametrize("value", ["-ERR not an error", "+OK", "", "ünïcode\r\n"])
def test_an_overridden_reply_is_data_whatever_it_begins_with(client: Redis, value: str) -> None:
    code = f"""
async def f(r):
    override_reply({value!r})
GB().map(f).register(prefix='node-data:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""
    execute(client, code, "ID", "node-data", "UPGRADE")
    assert client.get("node-data:1") == value


def test_a_function_that_raises_answers_its_get_with_the_error(client: Redis) -> None:
    hook = "prefix='node-bad:*', commands=['get'], eventTypes=['keymiss'], mode='async_local'"
    execute(client, f"GB().map(lambda r: 1/0).register({hook})")
    with pytest.raises(ResponseError, match="ZeroDivisionError"):
        client.get("node-bad:1")


def test_a_hooked_miss_is_nil_inside_a_transaction_and_a_script(client: Redis) -> None:
    execute(client, ANSWERS.replace("{prefix}", "node-multi:"))
    pipeline = client.pipeline(transaction=True)
    pipeline.get("node-multi:1")
    assert pipeline.execute() == [None]
    assert client.eval("return redis.call('get', KEYS[1])", 1, "node-multi:1") is None


def test_equal_questions_at_once_are_computed_once(redis_node: Node, client: Redis) -> None:
    code = """
import asyncio
count = 0
async def f(r):
    global count
    count += 1
    while not execute('EXISTS', 'node-open'):
        await asyncio.sleep(0.005)
    override_reply(f'run {count}')
GB().map(f).register(prefix='node-once:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""
    execute(client, code)
    answers: list[str] = []

    def ask() -> None:
        with redis_node.client(decode_responses=True) as own:
            answers.append(str(own.get("node-once:1")))

    askers = [threading.Thread(target=ask) for _ in range(10)]
    for asker in askers:
        asker.start()
    wait_until(lambda: client.info("shardqa")["shardqa_waiting_clients"] == 10, "all ask")
    client.set("node-open", "1")
    for asker in askers:
        asker.join()
    assert answers == ["run 1"] * 10


def test_redis_serves_others_while_a_function_computes(client: Redis, redis_node: Node) -> None:
    execute(client, "def f(r):\n    while execute('get', 'node-go') is None: pass\n    return 'went'\n"
            "GB('CommandReader').map(f).register(trigger='node-wait', mode='async_local')")  # fmt: skip
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(send(redis_node.client(), "RG.TRIGGER", "node-wait")))
    waiting.start()
    assert client.ping()
    client.set("node-go", "1")
    waiting.join()
    assert got == [[b"went"]]


def test_an_event_reaches_its_registration(client: Redis) -> None:
    code = """
GB().foreach(lambda r: execute('RPUSH', 'node-seen', r['event'], r['key'], r['value']['f'])).register(
    prefix='node-event:*', eventTypes=['hset'], keyTypes=['hash'], mode='async_local')
"""
    execute(client, code)
    client.set("node-event:string", "not this")
    client.hset("node-event:1", "f", "v")
    wait_until(lambda: client.llen("node-seen") == 3, "the event was handled")
    assert client.lrange("node-seen", 0, -1) == ["hset", "node-event:1", "v"]


def test_unregister_ends_hook_and_function(client: Redis) -> None:
    execute(client, ANSWERS.replace("{prefix}", "node-gone:"), "ID", "node-gone")
    id = registration_of(client, "node-gone:*")
    assert send(client, "RG.UNREGISTER", id) == "OK"
    assert client.get("node-gone:1") is None
    assert not registration_of(client, "node-gone:*")


def registration_of(client: Redis, prefix: str) -> str:
    """The id of the registration with this prefix; empty when there is none."""
    for dump in send(client, "RG.DUMPREGISTRATIONS"):
        fields = dict(zip(dump[::2], dump[1::2], strict=True))
        if prefix in fields["RegistrationData"][-1]:
            return str(fields["id"])
    return ""


def test_functions_may_not_stop_the_server(client: Redis) -> None:
    for command in ("'SHUTDOWN'", "'DEBUG', 'SLEEP', '0'", "'CONFIG', 'SET', 'maxmemory', '1'"):
        with pytest.raises(ResponseError):
            execute(client, f"execute({command})")
    assert client.ping()


def test_a_reader_in_the_manner_of_the_pattern_answers_and_caches(client: Redis) -> None:
    """tokens of a document + tokens of a question -> a model -> the best place, from inside an async function."""
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
    execute(client, READER, "ID", "reader", "UPGRADE")
    assert client.get("read:d1:1 2 3") == "5"  # the 30, after three tokens of the question and two of the document
    wait_until(lambda: client.exists("read:d1:1 2 3"), "the answer is stored")
    send(client, "RG.UNREGISTER", registration_of(client, "read:*"))
    assert client.get("read:d1:1 2 3") == "5"


def test_a_deadline_ends_a_function_that_never_answers(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("TIMEOUT", "1000"))
    with node.client(decode_responses=True) as client:
        code = "def f(r):\n    while True: pass\n"
        execute(client, code + "GB('CommandReader').map(f).register(trigger='loop', mode='async_local')")
        execute(client, echo("after"))
        for _ in range(4):  # one more than there are threads
            with pytest.raises(ResponseError, match="TIMEOUT"):
                send(client, "RG.TRIGGER", "loop")
        assert send(client, "RG.TRIGGER", "after") == ["yes"]
