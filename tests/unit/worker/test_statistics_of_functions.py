"""Statistics of registrations and executions: in RG.DUMPREGISTRATIONS, RG.DUMPEXECUTIONS, INFO's lines, RG.PYLOGS."""

import time
from typing import Any

import pytest
from redis import ResponseError

from shardqa.worker.frames import Type
from shardqa.worker.gears.histogram import BUCKETS, RunHistogram, bucket_of, percentile, top_of, up_to
from tests.unit.worker_client import PATIENCE, WorkerClient

# RedisGears' fields of a CommandReader, in its order
OLD = ["mode", "numTriggered", "numSuccess", "numFailures", "numAborted", "lastRunDurationMS"]
OLD += ["totalRunDurationMS", "avgRunDurationMS", "lastError", "args"]
NEW = ["queue", "p50RunDurationUS", "p99RunDurationUS", "runHistogramUS"]


def named(flat: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def data_of(worker: WorkerClient, trigger: str) -> dict[str, Any]:
    entries = map(named, worker.request("RG.DUMPREGISTRATIONS", "WITH", "STATISTICS"))
    entry = next(entry for entry in entries if trigger.encode() in named(entry["RegistrationData"])["args"])
    return named(entry["RegistrationData"]) | named(entry["Statistics"])


def line_of(worker: WorkerClient, trigger: str, **numbers: int) -> dict[str, str]:
    """INFO's line of a registration, once it has these numbers."""
    until, line = time.monotonic() + PATIENCE, dict[str, str]()
    while time.monotonic() < until:
        items = [item.decode() for item in worker.wait(lambda f: f.type is Type.STATS).items()]
        lines = [v for k, v in zip(items[::2], items[1::2], strict=True) if k.startswith("registration_")]
        found = [dict(pair.split("=") for pair in text.split(",")) for text in lines if f"name={trigger}," in text]
        line = found[0] if found else line
        if line and all(line[name] == str(value) for name, value in numbers.items()):
            return line
    raise AssertionError(f"{trigger}: {line}, wanted {numbers}")


def test_a_bucket_is_at_most_a_quarter_wide() -> None:
    for value in [*range(70), 999, 10**6, 10**12 - 1]:
        top = top_of(bucket_of(value))
        assert value <= top <= value * 1.25 + 1
    assert bucket_of(1 << 60) == BUCKETS - 1


def test_percentiles_are_those_of_what_was_added() -> None:
    runs = RunHistogram()
    for value in range(1, 101):
        runs.add(value * 1000)
    assert 50_000 <= runs.percentile(0.5) <= 64_000
    assert 99_000 <= runs.percentile(0.99) <= 125_000
    assert up_to(runs.pairs(), 10**9) == runs.total == 100
    assert percentile([], 0.5) == RunHistogram().percentile(0.99) == 0


def test_statistics_stand_behind_the_fields_of_redisgears_on_request(worker: WorkerClient) -> None:
    worker.execute("GB('CommandReader').map(lambda r: 1 / int(r[1])).register(trigger='counted')")
    for word in ("1", "2", "0"):
        worker.request("RG.TRIGGER", "counted", word)
    data = data_of(worker, "counted")
    assert list(data) == OLD + NEW
    assert all(b"Statistics" not in entry for entry in worker.request("RG.DUMPREGISTRATIONS"))
    assert (data["numTriggered"], data["numSuccess"], data["numFailures"], data["queue"]) == (3, 2, 1, 0)
    assert data["args"] == [b"trigger", b"counted", b"inorder", 0]
    assert b"ZeroDivisionError" in data["lastError"]
    assert sum(count for _, count in data["runHistogramUS"]) == 3
    assert 0 < data["p50RunDurationUS"] <= data["p99RunDurationUS"]


def test_clearing_resets_the_histogram_too(worker: WorkerClient) -> None:
    worker.execute("GB('CommandReader').register(trigger='cleared')")
    worker.request("RG.TRIGGER", "cleared")
    assert worker.request("RG.CLEARREGISTRATIONSSTATS") == b"OK"
    data = data_of(worker, "cleared")
    assert (data["numTriggered"], data["runHistogramUS"], data["p99RunDurationUS"]) == (0, [], 0)


def test_what_waits_or_runs_is_the_queue(worker: WorkerClient) -> None:
    code = (
        "import asyncio\ngo = asyncio.Event()\nasync def f(r):\n    await go.wait()\nasync def end(r):\n    go.set()\n"
    )
    steps = "GB('CommandReader').map(f).register(trigger='queued', inorder=True, mode='async_local')\n"
    worker.execute(code + steps + "GB('CommandReader').foreach(end).register(trigger='go', mode='async_local')")
    asked = [worker.ask(Type.REQUEST, "default", "RG.TRIGGER", "queued") for _ in range(3)]
    assert data_of(worker, "queued")["queue"] == 3
    worker.request("RG.TRIGGER", "go")
    for id in asked:
        worker.reply(id)
    assert data_of(worker, "queued")["queue"] == 0


@pytest.mark.parametrize(("word", "runs"), [((), 3), (("ABORTPENDING",), 1)], ids=["run", "aborted"])
def test_triggers_that_wait_in_order_end_as_events_do_where_their_registration_goes(
    worker: WorkerClient, word: tuple[str, ...], runs: int
) -> None:
    code = (
        "import asyncio\ngo = asyncio.Event()\nasync def f(r):\n    await go.wait()\nasync def end(r):\n    go.set()\n"
    )
    code += f"GB('CommandReader').map(f).register(trigger='ordered{runs}', inorder=True, mode='async_local')\n"
    id = worker.register(code + f"GB('CommandReader').foreach(end).register(trigger='go{runs}', mode='async_local')")
    asked = [worker.ask(Type.REQUEST, "default", "RG.TRIGGER", f"ordered{runs}") for _ in range(3)]
    assert data_of(worker, f"ordered{runs}")["queue"] == 3
    assert worker.request("RG.UNREGISTER", id, *word) == b"OK"
    worker.request("RG.TRIGGER", f"go{runs}")
    errors = [str(reply) for reply in map(worker.reply, asked) if isinstance(reply, Exception)]
    assert errors == ["ERR the execution was aborted: its registration went before its turn"] * (3 - runs)


def test_events_that_wait_are_in_the_queue(worker: WorkerClient) -> None:
    code = "import asyncio\ngate = asyncio.Event()\nasync def f(r):\n    await gate.wait()\n"
    code += "async def end(r):\n    gate.set()\n"
    both = "GB('CommandReader').foreach(end).register(trigger='gate', mode='async_local')\n"
    id = worker.register(code + "GB().map(f).register('q:*', readValue=False, mode='async_local')\n" + both)
    for number in range(40):
        worker.send(Type.EVENT, id, "set", f"q:{number % 20}", "string")
    assert data_of(worker, "q:*")["queue"] == 40
    worker.request("RG.TRIGGER", "gate")
    line_of(worker, "q:*", queue=0, succeeded=40)


def test_info_has_a_line_for_each_registration_and_takes_it_back(worker: WorkerClient) -> None:
    id = worker.register("GB('CommandReader').map(lambda r: r[1]).register(trigger='told')")
    worker.request("RG.TRIGGER", "told", "x")
    worker.request("RG.TRIGGER", "told")
    line = line_of(worker, "told", triggered=2)
    assert (line["succeeded"], line["failed"], line["aborted"], line["le_10000ms"]) == ("1", "1", "0", "2")
    worker.request("RG.UNREGISTER", id)
    gone = f"registration_{id}".encode()
    worker.wait(lambda f: f.type is Type.STATS and (gone, b"") in zip(f.items()[::2], f.items()[1::2], strict=True))


def test_names_can_not_break_a_line_of_info(worker: WorkerClient) -> None:
    worker.execute("GB('CommandReader').register(trigger='a,b=c\\n#é')")
    assert line_of(worker, "a_b_c___", triggered=0)["queue"] == "0"


def test_executions_tell_records_errors_and_time(worker: WorkerClient) -> None:
    code = "def go():\n    yield from range(700)\nGB('PythonReader').map(lambda n: 1 // n).run(go)"
    id = worker.execute(code, "UNBLOCKING").decode()
    worker.request("RG.GETRESULTSBLOCKING", id)
    entries = map(named, worker.request("RG.DUMPEXECUTIONS", "WITH", "STATISTICS"))
    listed = next(entry for entry in entries if entry["executionId"] == id.encode())
    assert list(listed)[:3] == ["executionId", "status", "registered"]
    assert (listed["records"], listed["errorCount"]) == (700, 1)
    plan = named(named(worker.request("RG.GETEXECUTION", id, "WITH", "STATISTICS")[0])["execution_plan"])
    assert list(plan)[-4:] == ["records", "errorCount", "elapsedMS", "aborted"]
    assert plan["records"] == 700
    told = worker.wait(lambda f: f.type is Type.STATS and (b"executions_failed", b"1") in pairs(f.items()))
    assert dict(pairs(told.items()))[b"executions_us_p50"] > b"0"


def pairs(items: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(items[::2], items[1::2], strict=True))


def test_logs_have_what_functions_logged_and_how_they_failed(worker: WorkerClient) -> None:
    worker.execute(
        "GB('CommandReader').foreach(log).map(lambda r: 1 // 0).register(trigger='logs', convertToStr=False)"
    )
    before = worker.request("RG.PYLOGS")[-1][0]
    worker.request("RG.TRIGGER", "logs", "a word")
    lines = worker.request("RG.PYLOGS", str(before))
    assert [(level, b"logs" in whose) for _, level, whose, _ in lines] == [(b"notice", True), (b"error", True)]
    assert b"a word" in lines[0][3]
    assert b"ZeroDivisionError" in lines[1][3]
    assert before < lines[0][0] < lines[1][0]


def test_logs_are_bounded(worker: WorkerClient) -> None:
    code = "def f(r):\n    for n in range(600):\n        log('x' * 5000)\n"
    worker.execute(code + "GB('CommandReader').foreach(f).register(trigger='chatter')")
    worker.request("RG.TRIGGER", "chatter")
    lines = worker.request("RG.PYLOGS")
    assert (len(lines), max(len(line[3]) for line in lines)) == (500, 1000)
    assert isinstance(worker.request("RG.PYLOGS", "yesterday"), ResponseError)
