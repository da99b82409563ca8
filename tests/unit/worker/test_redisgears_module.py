"""RedisGears' names as programs of its time use them: as globals, as a module, and RG.* from inside functions."""

from collections.abc import Callable

import pytest

from tests.unit.worker_client import WorkerClient

GLOBALS = (
    "redisgears rg asyncio Thread Future copy Log ConfigGet GearsFuture gearsConfigGet gearsCtx GB GearsBuilder "
    "execute atomic hashtag log configGet registerTE"
)
OF_THE_MODULE = (
    "executeCommand GB gearsCtx atomicCtx getMyHashTag log config_get GearsFuture getGearsSession setGearsSession"
)


def run(worker: WorkerClient, function: str, trigger: str = "names") -> object:
    """Returns what the function `f` of this code gives to a trigger."""
    code = f"{function}\nGB('CommandReader').map(f).register(trigger='{trigger}', mode='async_local')"
    assert worker.execute(code, "ID", "s-names", "UPGRADE") == b"OK"
    return worker.request("RG.TRIGGER", trigger)


@pytest.mark.parametrize("name", GLOBALS.split())
def test_a_script_finds_the_global(worker: WorkerClient, name: str) -> None:
    assert worker.execute(f"assert {name}") == b"OK"


@pytest.mark.parametrize("name", OF_THE_MODULE.split())
def test_the_module_redisgears_has_the_name(worker: WorkerClient, name: str) -> None:
    assert worker.execute(f"from redisgears import {name}") == b"OK"


def test_a_command_of_the_module_acts_for_the_function_that_runs(worker: WorkerClient) -> None:
    worker.answer = lambda words: b"$3\r\n" + words[0][:3] + b"\r\n"
    assert run(worker, "from redisgears import executeCommand as go\ndef f(r): return go('PING')") == [b"PIN"]


def test_the_main_module_has_the_names_of_a_script(worker: WorkerClient) -> None:
    code = f"import __main__\nfor n in {GLOBALS!r}.split(): getattr(__main__, n)\n__main__.gearsCtx('PythonReader')"
    assert worker.execute(code) == b"OK"


def test_gears_ctx_of_a_reader_is_its_builder(worker: WorkerClient) -> None:
    assert worker.execute("gearsCtx('PythonReader').run(lambda: iter([3]), mode='async_local')") == [[b"3"], []]


def test_pickles_name_functions_of_the_module_by_reference(worker: WorkerClient) -> None:
    code = "import pickle\nfrom redisgears import executeCommand as f\nassert pickle.loads(pickle.dumps(f)) is f"
    assert worker.execute(code) == b"OK"


def test_a_function_executes_commands_of_gears_that_do_not_wait(worker: WorkerClient) -> None:
    assert run(worker, "def f(r): return len(execute('RG.DUMPREGISTRATIONS'))") == [b"1"]
    assert run(worker, "async def f(r): return execute('rg.configget', 'MaxExecutions')[0]") == [b"1000"]


@pytest.mark.parametrize("command", ["RG.PYEXECUTE", "RG.GETRESULTSBLOCKING"])
def test_a_command_that_has_to_wait_says_so(worker: WorkerClient, command: str) -> None:
    assert f"{command} may have to wait" in str(run(worker, f"def f(r): return execute('{command}', 'x')"))


def test_settings_begin_as_the_load_arguments_say(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=("timeout", "1000", "maxexecutions", "7"))
    assert worker.request("RG.CONFIGGET", "MaxExecutions") == [7]
