"""TORCH models, scripts and DAGs on a real node with the real worker."""

import io
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis.backoff import ConstantBackoff
from redis.exceptions import ResponseError, TryAgainError
from redis.retry import Retry

from tests.nodes import Node, wait_until

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="TorchScript is torch's")
onnx_models = pytest.importorskip("tests.onnx_models", reason="a model of these tests is made with onnx")

SCRIPT = """
def bar(tensors: List[Tensor], keys: List[str], args: List[str]):
    return tensors[0] + tensors[1]

def two(tensors: List[Tensor], keys: List[str], args: List[str]):
    return [tensors[0], tensors[0] * 2]

def number(value: Any):
    return torch.tensor(int(str(value)))

def set_and_get(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", keys[0], args[0])
    return number(redis.execute("GET", keys[0]))

def listed(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("DEL", keys[0])
    redis.execute("RPUSH", keys[0], 3, args[0])
    return torch.stack([number(v) for v in redis.asList(redis.execute("LRANGE", keys[0], 0, -1))])

def count(tensors: List[Tensor], keys: List[str], args: List[str]):
    return torch.tensor(len(redis.asList(redis.execute("LRANGE", keys[0], 0, -1))))

def by_model(tensors: List[Tensor], keys: List[str], args: List[str]):
    return redisAI.model_execute(keys[0], tensors, 1)

def slow(tensors: List[Tensor], keys: List[str], args: List[str]):
    x = tensors[0]
    for i in range(60000):
        x = x + 1
    return x

def restores(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("RESTORE", keys[0], "0", args[0])
    return tensors[0]

def words_of_a_list(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", [keys[0], args[0]])

def nothing(tensors: List[Tensor], keys: List[str], args: List[str]):
    return 5

def one_word(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", keys[0])
"""
ENTRY_POINTS = re.findall(r"def (\w+)\(tensors", SCRIPT)


def adder() -> bytes:
    import torch  # most of these tests leave it to the worker

    class Adder(torch.nn.Module):
        def forward(self, a, b):  # type: ignore[no-untyped-def]
            return a + b

    file = io.BytesIO()
    traced = torch.jit.trace(Adder(), (torch.ones(2), torch.ones(2)))  # type: ignore[no-untyped-call]
    torch.jit.save(traced, file)
    return file.getvalue()


Run = Callable[..., Any]


@pytest.fixture
def run(redis_node: Node) -> Run:
    """Commands on a node that has model ai:m, script ai:s, tensors ai:a and ai:b."""
    patience = Retry(ConstantBackoff(0.5), 240)  # a worker that imports torch on a busy machine answers nobody
    client: Any = redis_node.client(protocol=2, retry=patience, retry_on_error=[TryAgainError])
    if not client.exists("ai:s"):
        client.execute_command("AI.MODELSTORE", "ai:m", "TORCH", "CPU", "BLOB", adder())
        client.execute_command("AI.MODELSTORE", "ai:onnx", "ONNX", "CPU", "BLOB", onnx_models.adder())
        points = [len(ENTRY_POINTS), *ENTRY_POINTS]
        client.execute_command("AI.SCRIPTSTORE", "ai:s", "CPU", "ENTRY_POINTS", *points, "SOURCE", SCRIPT)
        client.execute_command("AI.TENSORSET", "ai:a", "FLOAT", 2, "VALUES", 1, 2)
        client.execute_command("AI.TENSORSET", "ai:b", "FLOAT", 2, "VALUES", 3, 4)

    def run(*words: Any) -> Any:
        if len(words) == 1:
            words = tuple(words[0].split())
        return client.execute_command(*words)

    return run


def values(run: Run, key: str) -> list[Any]:
    return [float(v) for v in run("AI.TENSORGET", key, "VALUES")]


@pytest.mark.parametrize(
    "command",
    [
        "AI.MODELEXECUTE ai:m INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c",
        "AI.MODELRUN ai:m INPUTS ai:a ai:b OUTPUTS ai:c",
        "AI.SCRIPTEXECUTE ai:s bar INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c",
        "AI.SCRIPTEXECUTE ai:s by_model KEYS 1 ai:m INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c",
        "AI.SCRIPTEXECUTE ai:s by_model KEYS 1 ai:onnx INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c",
    ],
)
def test_models_and_scripts_write_their_outputs(run: Run, command: str) -> None:
    run("DEL ai:c")
    assert run(command) == b"OK"
    assert values(run, "ai:c") == [4, 6]


@pytest.mark.parametrize("dtype", ["BFLOAT16", "FLOAT16", "DOUBLE", "INT8", "INT64", "UINT8"])
def test_torch_takes_and_gives_tensors_of_each_type(run: Run, dtype: str) -> None:
    run(f"AI.TENSORSET ai:x {dtype} 2 VALUES 1 2")
    assert run("AI.MODELEXECUTE ai:m INPUTS 2 ai:x ai:x OUTPUTS 1 ai:y") == b"OK"
    assert run("AI.TENSORGET ai:y META")[1] == dtype.encode()
    assert values(run, "ai:y") == [2, 4]


def test_a_script_calls_redis_with_words_in_any_order(run: Run) -> None:
    assert run("AI.SCRIPTEXECUTE ai:s set_and_get KEYS 1 ai:k ARGS 1 42 OUTPUTS 1 ai:r") == b"OK"
    assert run("GET ai:k") == b"42"
    assert values(run, "ai:r") == [42]
    run("AI.SCRIPTEXECUTE ai:s listed KEYS 1 ai:l ARGS 1 7 OUTPUTS 1 ai:r")
    assert values(run, "ai:r") == [3, 7]
    run("AI.SCRIPTEXECUTE ai:s count KEYS 1 ai:none OUTPUTS 1 ai:r")
    assert values(run, "ai:r") == [0]
    assert run("AI.SCRIPTEXECUTE ai:s set_and_get OUTPUTS 1 ai:r ARGS 1 43 KEYS 1 ai:k TIMEOUT 20000") == b"OK"
    assert values(run, "ai:r") == [43]


def test_a_script_may_not_run_what_functions_may_not(run: Run) -> None:
    with pytest.raises(ResponseError, match="RESTORE"):
        run("AI.SCRIPTEXECUTE ai:s restores KEYS 1 ai:new INPUTS 1 ai:a ARGS 1 x OUTPUTS 1 ai:r")
    assert run("EXISTS ai:new") == 0


def test_a_script_acts_with_its_callers_rights(run: Run, redis_node: Node) -> None:
    run("ACL SETUSER reader on >p ~ai:* +ai.scriptexecute +get")
    client = redis_node.client(username="reader", password="p")
    words = "AI.SCRIPTEXECUTE ai:s set_and_get KEYS 1 ai:k ARGS 1 666 OUTPUTS 1 ai:r"
    with pytest.raises(ResponseError, match=r"permission|NOPERM"):
        client.execute_command(*words.split())
    assert run("GET ai:k") != b"666"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("AI.SCRIPTEXECUTE ai:s none INPUTS 1 ai:a OUTPUTS 1 ai:r", "Function does not exist: none"),
        ("AI.SCRIPTEXECUTE ai:s number INPUTS 1 ai:a OUTPUTS 1 ai:r", "Function does not exist: number"),
        ("AI.SCRIPTEXECUTE ai:s two INPUTS 1 ai:a OUTPUTS 1 ai:r", "OUTPUTS"),
        ("AI.SCRIPTEXECUTE ai:s nothing INPUTS 1 ai:a OUTPUTS 1 ai:r", "no tensor"),
        ("AI.SCRIPTEXECUTE ai:s by_model KEYS 1 ai:gone OUTPUTS 1 ai:r", "model key is empty"),
        ("AI.SCRIPTSTORE ai:x CPU ENTRY_POINTS 1 f SOURCE nonsense[", "never closed"),
        ("AI.SCRIPTSTORE ai:x CPU ENTRY_POINTS 1 f SOURCE #", "Function f does not exist in the given script."),
        ("AI.SCRIPTSET ai:x GPU SOURCE x", "GPU is not available"),
        ("AI.MODELSTORE ai:x TORCH CPU BLOB nonsense", "archive|ZIP|zip"),
    ],
)
def test_what_goes_wrong_is_said(run: Run, command: str, text: str) -> None:
    with pytest.raises(ResponseError, match=text):
        run(command)


def test_a_script_of_the_old_kind_takes_tensors_one_by_one_and_a_list(run: Run) -> None:
    source = "def addn(a, b: List[Tensor]):\n    return a + torch.stack(b).sum()\n"
    assert run("AI.SCRIPTSET", "ai:o", "CPU", "SOURCE", source) == b"OK"
    assert run("AI.SCRIPTRUN ai:o addn INPUTS ai:a $ ai:b ai:a OUTPUTS ai:r") == b"OK"
    assert values(run, "ai:r") == [11, 12]


def test_an_empty_script_is_stored_as_redisai_stores_it(run: Run) -> None:
    assert run("AI.SCRIPTSET", "ai:empty", "CPU", "SOURCE", "") == b"OK"
    assert run("AI.SCRIPTGET ai:empty SOURCE") == b""
    with pytest.raises(ResponseError, match="Function does not exist: f"):
        run("AI.SCRIPTRUN ai:empty f OUTPUTS ai:r")


def test_an_entry_point_must_take_tensors_keys_and_args(run: Run) -> None:
    with pytest.raises(ResponseError, match=r"Wrong number of inputs in function f\. Expected 3 but was 1"):
        run("AI.SCRIPTSTORE", "ai:x", "CPU", "ENTRY_POINTS", 1, "f", "SOURCE", "def f(a):\n    return a\n")


def test_a_script_past_its_timeout_is_not_waited_for(run: Run) -> None:
    assert run("AI.SCRIPTEXECUTE ai:s slow INPUTS 1 ai:a OUTPUTS 1 ai:r TIMEOUT 20") == b"TIMEDOUT"


GRAPH = "|> AI.TENSORSET t FLOAT 2 VALUES 10 20 |> AI.MODELEXECUTE ai:m INPUTS 2 ai:a t OUTPUTS 1 u "


def test_a_dag_keeps_its_own_names_and_persists_what_it_is_told_to(run: Run) -> None:
    run("DEL ai:z")
    last = "|> AI.SCRIPTEXECUTE ai:s bar INPUTS 2 u t OUTPUTS 1 ai:z |> AI.TENSORGET ai:z META VALUES"
    replies = run("AI.DAGEXECUTE LOAD 1 ai:a PERSIST 1 ai:z " + GRAPH + last)
    assert replies == [*[b"OK"] * 3, [b"dtype", b"FLOAT", b"shape", [2], b"values", [b"21", b"42"]]]
    assert values(run, "ai:z") == [21, 42]
    assert run("EXISTS t u") == 0


def test_a_name_that_is_set_again_has_the_value_it_had_at_each_place(run: Run) -> None:
    again = "|> AI.TENSORGET t VALUES |> AI.TENSORSET t INT8 1 VALUES 5 |> AI.TENSORGET t VALUES"
    replies = run("AI.DAGEXECUTE LOAD 1 ai:a " + GRAPH + again)
    assert [replies[2], replies[4]] == [[b"10", b"20"], [5]]


def test_after_a_failed_operation_the_rest_is_not_run_and_nothing_persists(run: Run) -> None:
    run("DEL ai:z")
    bad = "|> AI.MODELEXECUTE ai:m INPUTS 2 u v OUTPUTS 1 ai:z |> AI.TENSORGET ai:z"
    replies = run("AI.DAGEXECUTE LOAD 1 ai:a PERSIST 1 ai:z |> AI.TENSORSET v FLOAT 3 " + GRAPH + bad)
    assert replies[:3] == [b"OK"] * 3
    assert isinstance(replies[3], ResponseError)
    assert replies[4] == b"NA"
    assert run("EXISTS ai:z") == 0


def test_the_old_form_runs_without_keywords_and_with_old_operations(run: Run) -> None:
    words = " |> AI.TENSORSET t FLOAT 1 VALUES 4 |> AI.MODELRUN ai:m INPUTS t t OUTPUTS u |> AI.TENSORGET u "
    assert run("AI.DAGRUN" + words + "VALUES")[2] == [b"8"]
    assert run("AI.DAGRUN_RO" + words + "BLOB")[2] == np.float32(8).tobytes()


def test_a_dag_past_its_timeout_is_not_waited_for(run: Run) -> None:
    slow = "|> AI.SCRIPTEXECUTE ai:s slow INPUTS 1 ai:a OUTPUTS 1 x"
    assert run("AI.DAGEXECUTE LOAD 1 ai:a TIMEOUT 20 " + slow) == b"TIMEDOUT"


def test_a_torch_model_names_its_inputs_and_counts_its_outputs_and_runs(run: Run) -> None:
    run("AI.MODELSTORE", "ai:own", "TORCH", "CPU", "BLOB", adder())  # runs of the other tests' are counted late, too
    meta = run("AI.MODELGET ai:own META")
    assert meta[1] == b"TORCH"
    assert meta[10:14] == [b"inputs", [b"a", b"b"], b"outputs", [b""]]
    run("AI.DAGEXECUTE LOAD 1 ai:a " + GRAPH.replace("ai:m", "ai:own"))
    assert run("AI.INFO ai:own")[-5:] == [2, b"calls", 1, b"errors", 0]
    run("AI.SCRIPTEXECUTE ai:s by_model KEYS 1 ai:own INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c")
    wait_until(lambda: run("AI.INFO ai:own")[-3] == 2, "the script's run is counted")
    run("AI.INFO ai:own RESETSTAT")
    assert run("AI.INFO ai:own")[-5:] == [0, b"calls", 0, b"errors", 0]


def test_a_replica_runs_a_read_only_dag(node_and_replica: tuple[Node, Node]) -> None:
    master, replica = (node.client(protocol=2) for node in node_and_replica)
    master.execute_command("AI.MODELSTORE", "ai:m", "ONNX", "CPU", "BLOB", onnx_models.adder())
    master.execute_command("AI.TENSORSET", "ai:a", "FLOAT", 2, "VALUES", 1, 2)
    assert master.wait(1, 20000) == 1
    words = f"LOAD 1 ai:a {GRAPH} |> AI.TENSORGET u VALUES".split()
    assert replica.execute_command("AI.DAGEXECUTE_RO", *words)[2] == [b"11", b"22"]
    with pytest.raises(ResponseError, match=r"read only replica|READONLY"):
        replica.execute_command("AI.DAGEXECUTE", *words)


def test_a_script_that_gives_nothing_is_answered_and_may_give_redis_a_list_of_words(run: Run) -> None:
    assert run("AI.SCRIPTEXECUTE", "ai:s", "words_of_a_list", "KEYS", 1, "ai:listed", "ARGS", 1, "v") == b"OK"
    assert run("GET", "ai:listed") == b"v"
    assert (
        run("AI.SCRIPTEXECUTE", "ai:s", "set_and_get", "KEYS", 1, "ai:set", "ARGS", 1, 4, "OUTPUTS", 1, "ai:number")
        == b"OK"
    )


def test_a_command_with_too_few_words_is_an_invalid_argument(run: Run) -> None:
    with pytest.raises(ResponseError, match="Redis command returned an error: Invalid argument: ERR wrong number"):
        run("AI.SCRIPTEXECUTE ai:s one_word KEYS 1 ai:w")


HOSTILE = {
    "reads a file": ("torch.from_file('/etc/shadow', False, 8, dtype=torch.uint8)", "unable to open file|ermission"),
    "makes a file": ("torch.from_file('{made}', True, 8, dtype=torch.uint8)", "unable to open file|ermission"),
    "takes all memory": ("torch.zeros([1000000, 1000000, 1000])", "memory"),
    "opens a file": ("open('/etc/passwd').read()", "undefined value open"),
    "calls itself": ("hostile(tensors, keys, args)", "called recursively"),
    "is nested deeply": ("(" * 5_000 + "tensors[0]" + ")" * 5_000, "too many nested parentheses"),
    "has a long sum": ("tensors[0]" + " + tensors[0]" * 5_000, "maximum recursion depth"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_script_gets_an_error_and_no_file(run: Run, name: str, tmp_path: Path) -> None:
    body, error = HOSTILE[name]
    source = f"def hostile(tensors: List[Tensor], keys: List[str], args: List[str]):\n    return {body}\n"
    words = source.replace("{made}", str(tmp_path / "made"))

    def store_and_execute() -> None:
        run("AI.SCRIPTSTORE", "ai:h", "CPU", "ENTRY_POINTS", 1, "hostile", "SOURCE", words)
        run("AI.SCRIPTEXECUTE ai:h hostile INPUTS 1 ai:a OUTPUTS 1 ai:r")

    with pytest.raises(ResponseError, match=error):
        store_and_execute()
    assert not list(tmp_path.iterdir())
    assert run("AI.SCRIPTEXECUTE ai:s bar INPUTS 2 ai:a ai:b OUTPUTS 1 ai:c") == b"OK"
