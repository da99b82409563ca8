"""A worker is killed at each step of storing and running models: nothing is half there, and the replica is equal.

The worker stops exactly between two frames (steps.py). What the command said then holds: OK, and all of it is there;
an error, and nothing is. Afterwards the same command is done again. A script's own calls are its caller's: what it had
written before the kill stays, on the replica too.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from redis.exceptions import RedisError

from tests.faults.steps import Step, Steps
from tests.nodes import Node, running_node, wait_until

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import adder

SOURCE = """
def twice(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", keys[0], "first")
    redis.execute("SET", keys[1], "second")
    return tensors[0] * 2
"""
STEPS = (
    Step("store", "the file came", "in", "MODELLOAD"),
    Step("store", "its names are told", "out", "REPLY"),
    Step("execute", "a run was asked for", "in", "EXECUTE"),
    Step("execute", "its outputs are told", "out", "TENSORS"),
    Step("graph", "a graph came", "in", "DAG"),
    Step("graph", "its outputs are told", "out", "DAG_DONE"),
    Step("script", "a script is to run", "in", "SCRIPT"),
    Step("script", "it writes", "out", "CALL", (b"first",)),
    Step("script", "it has written", "in", "CALLED", (b"first",)),
    Step("script", "it writes again", "out", "CALL", (b"second",)),
    Step("script", "its outputs are told", "out", "TENSORS"),
)
COMMANDS = {  # FILE is the model
    "store": "AI.MODELSTORE new ONNX CPU BATCHSIZE 8 BLOB FILE",
    "execute": "AI.MODELEXECUTE m INPUTS 2 a b OUTPUTS 1 out",
    "graph": "AI.DAGEXECUTE LOAD 2 a b PERSIST 2 out t |> AI.TENSORSET t FLOAT 2 VALUES 1 2"
    " |> AI.MODELEXECUTE m INPUTS 2 a t OUTPUTS 1 out",
    "script": "AI.SCRIPTEXECUTE s twice KEYS 2 one two INPUTS 1 a OUTPUTS 1 out",
}
WRITTEN = {"store": ["new"], "execute": ["out"], "graph": ["out", "t"], "script": ["out"]}
ALL = ["m", "s", "a", "b", "new", "out", "t", "one", "two"]
HEARTBEAT = ("HEARTBEAT", "20000")  # a busy machine, and torch that is imported


@dataclass(frozen=True, slots=True)
class Pair:
    master: Node
    replica: Node
    steps: Steps

    def run(self, *words: Any) -> Any:
        return self.master.client(socket_timeout=120).execute_command(*words)

    def do(self, operation: str) -> Any:
        return self.run(*(adder() if word == "FILE" else word for word in COMMANDS[operation].split()))

    def equal(self) -> bool:
        digests = [node.client().execute_command("DEBUG", "DIGEST-VALUE", *ALL) for node in (self.master, self.replica)]
        return bool(digests[0] == digests[1])

    def ready(self) -> bool:
        info = self.master.client().info("shardqa")
        return bool(info["shardqa_worker_state"] == "ready" and not info["shardqa_waiting_clients"])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("stepping")
    debug = (("enable-debug-command", "local"),)
    with ExitStack() as stack:
        steps = stack.enter_context(Steps(folder))
        options: dict[str, Any] = {"extra": debug, "module_arguments": HEARTBEAT}
        master = stack.enter_context(running_node(folder / "master", python=steps.python, **options))
        replica = stack.enter_context(running_node(folder / "replica", replica_of=master.port, **options))
        wait_until(lambda: replica.client().info("replication")["master_link_status"] == "up", "the replica follows")
        pair = Pair(master, replica, steps)
        wait_until(pair.ready, "the worker is ready")
        pair.run("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", adder())
        for key in ("a", "b"):
            pair.run("AI.TENSORSET", key, "FLOAT", 2, "VALUES", 1, 2)
        yield pair


def need_script(pair: Pair) -> None:
    pytest.importorskip("torch", reason="TorchScript is torch's")
    if not pair.run("EXISTS", "s"):
        pair.run("AI.SCRIPTSTORE", "s", "CPU", "ENTRY_POINTS", 1, "twice", "SOURCE", SOURCE)


def done(pair: Pair, operation: str) -> bool:
    """Whether all of what the command writes is there and right, rather than none of it; part of it is the fault."""
    exist = [bool(pair.run("EXISTS", key)) for key in WRITTEN[operation]]
    assert len(set(exist)) == 1, dict(zip(WRITTEN[operation], exist, strict=True))
    if exist[0] and operation == "store":
        assert pair.run("AI.MODELGET", "new", "BLOB") == adder()
    elif exist[0]:
        assert [float(value) for value in pair.run("AI.TENSORGET", "out", "VALUES")] == [2, 4]
    return exist[0]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


EVERY = os.environ.get("FAULTS") == "all"  # a worker that imports torch takes seconds to start


@pytest.mark.parametrize("step", [step for step in STEPS if EVERY or step.operation != "script"], ids=str)
def test_a_worker_killed_at_a_step_leaves_nothing_half_done(pair: Pair, step: Step) -> None:
    if step.operation == "script":
        need_script(pair)
    pair.run("DEL", "new", "out", "t", "one", "two")
    wait_until(pair.ready, "the worker is ready")
    pair.steps.arm(step, kill)
    said = attempt(lambda: pair.do(step.operation))
    assert pair.steps.reached.wait(20), f"{step} was not reached; the command said {said!r}"
    assert done(pair, step.operation) == (not isinstance(said, Exception)), said
    wait_until(pair.equal, "the replica is equal")
    wait_until(pair.ready, "the worker is there again", seconds=60)
    wait_until(lambda: not isinstance(attempt(lambda: pair.do(step.operation)), Exception), "done again")
    assert done(pair, step.operation)
    wait_until(pair.equal, "the replica is equal")
    assert pair.run("AI.MODELEXECUTE", "m", "INPUTS", 2, "a", "b", "OUTPUTS", 1, "c") == b"OK"
    assert pair.master.client().info("shardqa")["shardqa_models_quarantined"] == 0


def attempt(command: Callable[[], Any]) -> Any:
    try:
        return command()
    except RedisError as fault:
        return fault
