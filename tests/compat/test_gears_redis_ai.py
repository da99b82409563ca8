"""`import redisAI` in functions on a real node: runners of scripts and graphs, as RedisGears' users wrote them."""

import itertools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from redis import Redis, ResponseError

from tests.nodes import Node, wait_until

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="scripts are TorchScript")
onnx_models = pytest.importorskip("tests.onnx_models", reason="the model of these tests is made with onnx")

SCRIPT = """
def multiply(tensors: List[Tensor], keys: List[str], args: List[str]):
    return tensors[0] * tensors[1]

def noted(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", keys[0], args[0])
    return tensors[0]

def stacked(first, rest: List[Tensor]):
    return first + torch.stack(rest).sum(), first
"""
BODY = """
import redisAI

async def f(r):
    a, b = redisAI.mgetTensorsFromKeyspace(['gai:a', 'gai:b'])
{body}
    return [redisAI.tensorToFlatList(tensor) for tensor in found]

GB('CommandReader').map(f).register(trigger='{trigger}', mode='async_local')
"""
GRAPH = "await redisAI.createDAGRunner().Input('x', a)"
Run = Callable[..., Any]
NUMBERS = itertools.count()


@pytest.fixture
def run(client: Redis) -> Run:
    """Runs lines of a function; gives what they make of tensors a and b, in `found`, or raises their error."""
    if not client.exists("gai:s"):
        send: Any = client.execute_command
        send("AI.MODELSTORE", "gai:m", "ONNX", "CPU", "BLOB", onnx_models.adder())
        send("AI.SCRIPTSTORE", "gai:s", "CPU", "ENTRY_POINTS", 2, "multiply", "noted", "SOURCE", SCRIPT)
        send("AI.TENSORSET", "gai:a", "FLOAT", 2, "VALUES", 1, 2)
        send("AI.TENSORSET", "gai:b", "FLOAT", 2, "VALUES", 3, 4)

    def run(*lines: str) -> Any:
        trigger = f"gai{next(NUMBERS)}"
        body = "\n".join("    " + line for line in lines)
        assert client.execute_command("RG.PYEXECUTE", BODY.format(body=body, trigger=trigger)) == "OK"
        (reply,) = client.execute_command("RG.TRIGGER", trigger)
        return reply

    return run


def script(function: str, *lines: str) -> tuple[str, ...]:
    return (f"runner = redisAI.createScriptRunner('gai:s', '{function}')", *lines)


@pytest.mark.parametrize(
    ("first", "second", "output"), [("a", "b", ""), ("'input', a", "b, 'other'", ", 'output'")], ids=["bare", "named"]
)
def test_a_script_runner_takes_its_inputs_in_order_with_a_name_before_or_behind(
    run: Run, first: str, second: str, output: str
) -> None:
    lines = script(
        "multiply",
        f"assert redisAI.scriptRunnerAddInput(runner, {first}) == 1",
        f"redisAI.scriptRunnerAddInput(runner, {second})",
        f"redisAI.scriptRunnerAddOutput(runner{output})",
        "found = await redisAI.scriptRunnerRunAsync(runner)",
    )
    assert run(*lines) == "[[3.0, 8.0]]"


def test_a_model_runner_takes_tensors_of_values_blobs_and_keys(run: Run) -> None:
    lines = (
        "redisAI.setTensorInKey('gai:c', redisAI.createTensorFromBlob('FLOAT', [2], redisAI.tensorGetDataAsBlob(b)))",
        "runner = redisAI.createModelRunner('gai:m')",
        "redisAI.modelRunnerAddInput(runner, 'a', redisAI.createTensorFromValues('FLOAT', [2], [10, 20]))",
        "redisAI.modelRunnerAddInput(runner, 'b', redisAI.getTensorFromKey('gai:c'))",
        "redisAI.modelRunnerAddOutput(runner, 'sum')",
        "found = await redisAI.modelRunnerRunAsync(runner)",
        "assert redisAI.tensorGetDims(found[0]) == (2,)",
    )
    assert run(*lines) == "[[13.0, 24.0]]"


def test_a_function_that_is_no_entry_point_takes_tensors_and_a_list(run: Run) -> None:
    lines = script(
        "stacked",
        "redisAI.scriptRunnerAddInput(runner, a)",
        "redisAI.scriptRunnerAddInputList(runner, [a, b])",
        "found = await redisAI.scriptRunnerRunAsync(runner)",
    )
    assert run(*lines) == "[[11.0, 12.0], [1.0, 2.0]]"


def test_a_plain_function_runs_a_script_and_waits(client: Redis, run: Run) -> None:
    run("found = [a]")
    code = "def f(r):\n    import redisAI\n    runner = redisAI.createScriptRunner('gai:s', 'multiply')\n"
    code += "    for key in ('gai:a', 'gai:b'): redisAI.scriptRunnerAddInput(runner, redisAI.getTensorFromKey(key))\n"
    code += "    redisAI.scriptRunnerAddOutput(runner)\n"
    code += "    return redisAI.tensorToFlatList(redisAI.scriptRunnerRun(runner)[0])\n"
    client.execute_command("RG.PYEXECUTE", code + "GB('CommandReader').map(f).register(trigger='gaiplain')")
    assert client.execute_command("RG.TRIGGER", "gaiplain") == ["[3.0, 8.0]"]


POOLS = """
import redisAI, threading
from concurrent.futures import ThreadPoolExecutor

def work(r):
    runner = redisAI.createModelRunner('gai:m')
    for name in ('a', 'b'):
        redisAI.modelRunnerAddInput(runner, name, redisAI.getTensorFromKey('gai:' + name))
    redisAI.modelRunnerAddOutput(runner, 'sum')
    (found,) = redisAI.modelRunnerRun(runner)
    redisAI.setTensorInKey('gai:thread', found)
    return redisAI.tensorToFlatList(found)

def begin():
    global executor
    executor = ThreadPoolExecutor(1)

def in_thread(r):
    found = []
    thread = threading.Thread(target=lambda: found.append(work(r)))
    thread.start()
    thread.join()
    return found[0]

def in_own_pool(r):
    with ThreadPoolExecutor(1) as own:
        return own.submit(work, r).result()

GB('CommandReader').map(FUNCTION).register(trigger='gaipool', mode='async_local', onRegistered=begin)
"""


@pytest.mark.parametrize(
    "function",
    ["in_thread", "in_own_pool", "lambda r: executor.submit(work, r).result()"],
    ids=["a thread", "a pool of its own", "a pool of onRegistered's"],
)
def test_models_run_in_threads_that_a_function_began(client: Redis, run: Run, function: str) -> None:
    run("found = [a]")
    code = POOLS.replace("FUNCTION", function)
    client.execute_command("RG.PYEXECUTE", code, "ID", "gaipool", "UPGRADE")
    assert [client.execute_command("RG.TRIGGER", "gaipool") for _ in "12"] == [["[4.0, 6.0]"]] * 2


def test_a_thread_that_outlives_its_function_is_told_that_its_rights_have_ended(client: Redis, run: Run) -> None:
    run("found = [a]")
    code = """
import redisAI, threading
ended, failed, reasons = threading.Event(), threading.Event(), []
def late():
    ended.wait()
    try:
        redisAI.getTensorFromKey('gai:a')
    except Exception as error:
        reasons.append(str(error))
    failed.set()
def f(r):
    if len(r) > 1:
        return threading.Thread(target=late).start()
    ended.set()
    failed.wait()
    return reasons
GB('CommandReader').map(f).register(trigger='gailate', mode='async_local')
"""
    client.execute_command("RG.PYEXECUTE", code, "ID", "gailate", "UPGRADE")
    client.execute_command("RG.TRIGGER", "gailate", "begin")
    assert "the request whose rights this needs has ended" in client.execute_command("RG.TRIGGER", "gailate")[0]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (script("nothing", "found = await redisAI.scriptRunnerRunAsync(runner)"), "Function does not exist: nothing"),
        (("await redisAI.scriptRunnerRunAsync(redisAI.createScriptRunner('gai:x', 'f'))",), "script key is empty"),
        (("found = await redisAI.createDAGRunner().Run()",), "DAG is empty"),
        (
            (GRAPH + ".ScriptRun(name='gai:s', func='none', inputs=['x'], outputs=['y']).TensorGet('y').Run()",),
            "Function does not exist: none",
        ),
        (("found = await redisAI.createDAGRunner().TensorGet('x').Run()",), "INPUT key cannot be found in DAG"),
        (("redisAI.createDAGRunner().OpsFromString('AI.TENSORGET x')",), "begin with"),
        (("redisAI.createDAGRunner().OpsFromString('|> AI.MODELDEL x')",), "Unsupported command within DAG"),
        (("redisAI.createDAGRunner().OpsFromString('|> AI.MODELEXECUTE m INPUTS 3 a')",), "wrong number of arguments"),
    ],
)
def test_what_goes_wrong_is_said(run: Run, lines: tuple[str, ...], text: str) -> None:
    held = ("try:", *("    " + line for line in lines), "except Exception as error:", "    return str(error)")
    assert text in run("found = []", *held)


def test_a_graph_runs_models_and_scripts_and_gives_what_was_got(run: Run) -> None:
    lines = (
        "runner = redisAI.createDAGRunner()",
        "runner.Input('x', a).TensorSet('y', b)",
        "runner.ModelRun(name='gai:m', inputs=['x', 'y'], outputs=['sum'])",
        "runner.ScriptRun(name='gai:s', func='multiply', inputs=['sum', 'y'], outputs=['product'])",
        "found = await runner.TensorGet('product').TensorGet(name='sum').Run()",
    )
    assert run(*lines) == "[[12.0, 24.0], [4.0, 6.0]]"


def test_a_graph_is_built_from_words(client: Redis, run: Run) -> None:
    lines = (
        "runner = redisAI.createDAGRunner().Input(name='x', tensor=a)",
        "ops = '|> AI.TENSORSET y FLOAT 2 VALUES 10 20 |> AI.MODELEXECUTE gai:m INPUTS 2 x y OUTPUTS 1 sum'",
        "ops += ' |> AI.SCRIPTEXECUTE gai:s noted KEYS 1 gai:k INPUTS 1 sum ARGS 1 word OUTPUTS 1 same'",
        "found = await runner.OpsFromString(ops + ' |> AI.TENSORGET same VALUES').Run()",
    )
    assert run(*lines) == "[[11.0, 22.0]]"
    assert client.get("gai:k") == "word"


def test_runs_of_a_graph_count_in_ai_info(client: Redis, run: Run) -> None:
    client.execute_command("AI.MODELSTORE", "gai:own", "ONNX", "CPU", "BLOB", onnx_models.adder())
    run(
        "runner = redisAI.createDAGRunner().Input('x', a)",
        "found = await runner.ModelRun('gai:own', ['x', 'x'], ['y']).TensorGet('y').Run()",
    )
    wait_until(lambda: client.execute_command("AI.INFO", "gai:own")[-3] == 1, "the graph's run is counted")


def test_who_may_run_no_script_runs_none_in_a_function(redis_node: Node, client: Redis, run: Run) -> None:
    run("found = [a]")
    code = "import redisAI\nasync def f(r):\n    return await redisAI.scriptRunnerRunAsync("
    code += "redisAI.createScriptRunner('gai:s', 'noted'))\n"
    client.execute_command("RG.PYEXECUTE", code + "GB('CommandReader').map(f).register(trigger='gaiowner')")
    client.execute_command("ACL", "SETUSER", "gaiuser", "on", ">p", "~gai:*", "+rg.trigger", "+ai.tensorget")
    limited = redis_node.client(username="gaiuser", password="p")
    with limited, pytest.raises(ResponseError, match=r"(?i)ai\.scriptexecute"):
        limited.execute_command("RG.TRIGGER", "gaiowner")
