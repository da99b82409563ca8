"""`from shardqa.gears import …` in a script gives what the script finds as globals."""

from tests.unit.worker_client import WorkerClient


def test_an_import_gives_the_globals_of_the_script(worker: WorkerClient) -> None:
    names = "GB, GearsBuilder, execute, atomic, hashtag, log, runtime, gearsFuture, override_reply"
    same = "all(imported[n] is globals()[n] for n in imported)"
    code = (
        f"before = dict(globals())\nfrom shardqa.gears import {names}\nimport shardqa.gears as g\n"
        f"imported = {{n: getattr(g, n) for n in {names.split(', ')}}}\n"
        f"GB('CommandReader').map(lambda r, ok={same}: ok).register(trigger='names')"
    )
    assert worker.execute(code) == b"OK"
    assert worker.request("RG.TRIGGER", "names") == [b"True"]


def test_a_star_brings_all_of_them(worker: WorkerClient) -> None:
    code = "from shardqa.gears import *\nGB('CommandReader').map(lambda r: execute('PING')).register(trigger='star')"
    assert worker.execute(code) == b"OK"
    assert worker.request("RG.TRIGGER", "star") == [b"OK"]


def test_a_name_that_is_not_there_is_an_error_that_lists_what_is(worker: WorkerClient) -> None:
    assert "cannot import name 'nonsense'" in str(worker.execute("from shardqa.gears import nonsense"))
    assert "it has GB, GearsBuilder" in str(worker.execute("import shardqa.gears as g\ng.nonsense"))


def test_an_import_inside_a_function_says_where_it_belongs(worker: WorkerClient) -> None:
    code = "def f(r):\n    from shardqa.gears import log\nGB('CommandReader').map(f).register(trigger='inside')"
    assert worker.execute(code) == b"OK"
    assert "at its top, not inside a function" in str(worker.request("RG.TRIGGER", "inside"))
