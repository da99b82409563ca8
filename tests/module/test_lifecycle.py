"""The worker's birth and death, as clients see them."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
import redis

from .arguments import module_arguments  # noqa: TID251 (this package is tests/module)
from .servers import MODULE, Make, Server, until  # noqa: TID251 (this package is tests/module)


def test_a_request_goes_to_the_worker_and_its_reply_comes_back(shared: tuple[Server, Server]) -> None:
    assert shared[0].order("echo", "a", b"\x00\xff", "") == [b"a", b"\x00\xff", b""]


def test_a_megabyte_goes_both_ways_without_blocking_the_server(shared: tuple[Server, Server]) -> None:
    big = os.urandom(3_000_000)
    assert shared[0].order("echo", big) == [big]


def test_the_greeting_names_the_node_its_role_and_its_settings(shared: tuple[Server, Server]) -> None:
    (hello,) = shared[0].seen("HELLO")
    assert hello[2] == "2"
    assert len(hello[3]) == 40
    assert hello[4:7] == ["master", "0", str(shared[0].port)]
    defaults = {argument.hello: argument.default for argument in module_arguments() if argument.hello}
    assert dict(zip(hello[7::2], hello[8::2], strict=True)) == defaults
    assert shared[1].seen("HELLO")[0][4] == "replica"


def test_the_worker_gets_arguments_and_variables_of_any_length_whole(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readable, models, name = "/" + "r" * 4000, tmp_path / ("m" * 200), "N" * 300
    models.mkdir()
    monkeypatch.setenv(name, "value")
    server = make(arguments=f"READABLE {readable} MODELS {models} ENVIRONMENT {name}")
    variables = Path(f"/proc/{server.worker_pid()}/environ").read_text().split("\0")
    assert f"SHARDQA_READABLE={readable}:{models}" in variables
    assert f"{name}=value" in variables


@pytest.mark.parametrize("verb", ["die", "garbage", "giant", "cut", "close", "killed"])
def test_a_worker_that_breaks_is_replaced_and_its_clients_are_told_at_once(server: Server, verb: str) -> None:
    pid = server.worker_pid()
    if verb == "killed":
        server.kill_worker()
        assert server.client().set("x", "1")  # plain commands go on
    else:
        assert server.error("RG.TRIGGER", verb).startswith("TRYAGAIN")
    server.replaced(pid)
    assert server.order("echo", "again") == [b"again"]
    assert server.info()["worker_restarts"] == 1
    until(lambda: not Path(f"/proc/{pid}").exists())  # not even as a zombie


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (66, b"xxxx"),
        (67, b"\x00\x00\x00\x00"),
        (67, b"\x03\x00\x00\x00" + b"\x00\x00\x00\x00" + b"\x01\x00\x00\x000" + b"\x01\x00\x00\x005"),
        (68, b"\x01\x00\x00\x00\x01\x00\x00\x00x"),
        (70, b"\x00\x00\x00\x00"),
        (1, b"\x00\x00\x00\x00"),
        (200, b"\x00\x00\x00\x00"),
    ],
)
def test_a_malformed_frame_costs_the_worker_its_life_and_the_server_nothing(
    make: Make, kind: int, payload: bytes
) -> None:
    server = make()
    assert server.error("RG.TRIGGER", "wrong_frame", kind, payload).startswith("TRYAGAIN")
    assert "malformed frame" in server.log
    until(lambda: server.info()["worker_state"] == "ready")


@pytest.mark.parametrize(
    "reply",
    [b"", b"+OK\r\nmore", b"*9999999\r\n", b"?\r\n", b"*1\r\n" * 17 + b":1\r\n", b"*1\r\n" * 100_000 + b":1\r\n"],
)
def test_an_answer_that_is_no_value_is_the_error_of_its_request_alone(
    shared: tuple[Server, Server], reply: bytes
) -> None:
    before = shared[0].info()
    assert shared[0].error("RG.TRIGGER", "raw", reply).startswith("ERR the worker's answer can't be read")
    assert shared[0].order("echo", "x") == [b"x"]
    after = shared[0].info()
    assert after["worker_pid"] == before["worker_pid"]
    assert after["unreadable_replies"] == before["unreadable_replies"] + 1


def test_all_waiting_clients_hear_of_the_death_at_once(server: Server) -> None:
    errors: list[str] = []
    threads = [threading.Thread(target=lambda: errors.append(server.error("RG.TRIGGER", "hang"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    server.waiting(20)
    server.kill_worker()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 20
    assert all(e.startswith("TRYAGAIN") for e in errors)
    assert server.info()["waiting_clients"] == 0
    assert server.info()["pending_requests"] == 0


def test_the_last_words_of_a_worker_are_in_the_log(server: Server) -> None:
    server.error("RG.TRIGGER", "die")
    until(lambda: "worker: last words" in server.log and "exit status 3" in server.log)


def test_a_path_that_cannot_be_executed_is_named_with_the_reason(make: Make) -> None:
    server = make(arguments="PYTHON /nonexistent/python", worker=False)
    until(lambda: "No such file or directory" in server.log and "errno 2" in server.log)
    assert "TRYAGAIN" in server.error("RG.TRIGGER", "x")
    assert server.client().ping()


def test_without_a_python_the_module_stores_tensors_and_says_what_is_missing(make: Make) -> None:
    server = make(worker=False)
    assert server.client().execute_command("AI.TENSORSET", "t", "FLOAT", "1") == b"OK"
    assert "PYTHON /path/to" in server.error("RG.TRIGGER", "x")
    assert "PYTHON /path/to" in server.error("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "x")


# What is given, and what the log says that it must be.
WRONG_ARGUMENTS = {
    "PYTHON relative/path": "",
    "THREADS 0": "",
    "PYEXECUTE maybe": "",
    "TIMEOUT": "",
    "TF": "",
    "MaxExecutions 0": "",
    "MODEL_EXECUTION_TIMEOUT 999": "",
    "MODEL_CHUNK_SIZE 0": "",
    "THREADS_PER_QUEUE x": "",
    "MEMORY 100": "megabytes from 512 to 16777216, or 0",
    "SANDBOX none": "one of yes|network|no",
    "HEARTBEAT -1": "milliseconds from 1 to 86400000, or 0 for never",
    "USER nobody-of-this-name": "the name of a user of this machine, and not root",
    "USER root": "the name of a user of this machine, and not root",
}


@pytest.mark.parametrize("arguments", WRONG_ARGUMENTS)
def test_a_wrong_module_argument_stops_the_start_with_a_reason(arguments: str, tmp_path: Path) -> None:
    server = Server(tmp_path / "refused", arguments=arguments, worker=False)
    server.launch()
    assert server.ended() == 1
    assert f"module argument {arguments}" in server.log
    assert f"is wrong: it must be {WRONG_ARGUMENTS[arguments]}" in server.log


def test_requests_wait_for_a_worker_that_is_still_starting(make: Make) -> None:
    server = make(arguments="TIMEOUT 1000")
    (server.folder / "never-ready").touch()
    server.kill_worker()
    until(lambda: server.info()["worker_state"] == "starting")
    assert server.error("RG.TRIGGER", "echo", "x").startswith("TIMEOUT")
    (server.folder / "never-ready").unlink()
    server.kill_worker()
    until(lambda: server.info()["worker_state"] == "ready")
    assert server.order("echo", "x") == [b"x"]


def test_a_request_to_gears_waits_for_the_next_worker_and_fails_where_none_can_be_started(server: Server) -> None:
    server.kill_worker()
    until(lambda: server.info()["worker_state"] != "ready")
    assert server.order("echo", "x") == [b"x"]
    (server.folder / "python").unlink()
    server.kill_worker()
    until(lambda: server.info()["worker_state"] == "down")
    assert server.error("RG.TRIGGER", "echo", "x").startswith("TRYAGAIN")
    assert server.info()["queue_bytes"] == 0


def test_past_maxpending_a_request_is_refused_at_once(make: Make) -> None:
    server = make(arguments="MAXPENDING 3 TIMEOUT 0")
    clients = [server.client() for _ in range(3)]
    for client in clients:
        client.connection_pool.get_connection().send_command("RG.TRIGGER", "hang")
    server.waiting(3)
    assert server.error("RG.TRIGGER", "echo").startswith("BUSY 3 requests")
    assert server.info()["refused_busy"] == 1


def test_a_full_queue_to_a_worker_that_does_not_read_is_busy(make: Make) -> None:
    server = make(arguments="TIMEOUT 0 HEARTBEAT 0")
    server.register("s", ["s-1", "CommandReader", "", "go", [], [], []])
    os.kill(server.worker_pid(), signal.SIGSTOP)
    big = b"x" * 20_000_000
    for _ in range(4):
        server.client().connection_pool.get_connection().send_command("RG.TRIGGER", "echo", big)
    until(lambda: server.info()["queue_bytes"] > 64 << 20)
    assert server.error("RG.TRIGGER", "echo", "x").startswith("BUSY")
    removing, waiting = server.client().connection_pool.get_connection(), server.info()["waiting_clients"]
    removing.send_command("RG.UNREGISTER", "s-1")
    server.waiting(waiting + 1)  # what is to be removed is never refused
    assert server.client().set("x", 1)
    os.kill(server.worker_pid(), signal.SIGCONT)
    until(lambda: server.info()["queue_bytes"] == 0)
    assert server.order("echo", "x") == [b"x"]


def test_a_deadline_passes_and_the_worker_is_told_to_stop(make: Make) -> None:
    server = make(arguments="TIMEOUT 1000")
    server.hook(mode="hold")
    for words in (("RG.TRIGGER", "hang"), ("GET", "answer:1")):
        assert server.error(*words).startswith("TIMEOUT")
    until(lambda: len(server.seen("CANCEL")) == 2)
    assert server.info()["timeouts"] == 2
    assert server.info()["pending_requests"] == 0


def test_a_late_reply_to_nobody_is_dropped(make: Make) -> None:
    server = make(arguments="TIMEOUT 50")
    server.block()
    assert server.error("RG.TRIGGER", "late").startswith("TIMEOUT")
    server.unblock()
    until(lambda: server.info()["late_replies"] == 1)


def test_a_saving_child_does_not_keep_the_worker_from_seeing_the_end(server: Server) -> None:
    server.client().config_set("rdb-key-save-delay", "1000000")
    server.client().mset({f"k{i}": i for i in range(20)})
    server.client().bgsave()
    pid = server.worker_pid()
    assert server.error("RG.TRIGGER", "close").startswith("TRYAGAIN")
    server.replaced(pid)
    assert server.client().info("persistence")["rdb_bgsave_in_progress"] == 1


def test_the_module_can_be_loaded_into_a_running_server(tmp_path: Path) -> None:
    server = Server(tmp_path, module=None)
    server.launch()
    until(server.answers)
    server.client().execute_command("MODULE", "LOAD", str(MODULE), "PYTHON", str(tmp_path / "python"))
    until(lambda: server.info()["worker_state"] == "ready")
    assert server.order("echo", "x") == [b"x"]
    server.stop()


def test_a_second_load_of_the_module_is_refused_and_the_first_goes_on(server: Server, tmp_path: Path) -> None:
    server.hook()
    again = tmp_path / "again.so"
    shutil.copy(MODULE, again)
    for path in (MODULE, again):
        assert server.error("MODULE", "LOAD", str(path), "PYTHON", "/usr/bin/python3").startswith("ERR")
    assert "shardqa is loaded already" in server.log
    assert server.info()["registrations"] == 1
    assert server.client().get("answer:1") == b"value of answer:1"
    server.kill_worker()
    until(lambda: server.info()["worker_restarts"] == 1)
    until(lambda: server.order("echo", "x") == [b"x"])


def test_a_big_model_on_its_way_to_the_worker_refuses_no_request_and_loses_no_event(make: Make) -> None:
    server = make(arguments="TIMEOUT 0 HEARTBEAT 0")
    server.order("watch", "doc:")
    pid = server.worker_pid()
    os.kill(pid, signal.SIGSTOP)
    big = b"x" * (65 << 20)
    storing, asking = (server.client().connection_pool.get_connection() for _ in range(2))
    storing.send_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", big)
    until(lambda: server.info()["queue_model_bytes"] > 64 << 20)
    assert "other models" in server.error("AI.MODELSTORE", "n", "ONNX", "CPU", "BLOB", "x")
    asking.send_command("RG.TRIGGER", "echo", "x")
    server.waiting(2)
    server.client().set("doc:1", "x")
    os.kill(pid, signal.SIGCONT)
    assert storing.read_response() == b"OK"
    assert asking.read_response() == [b"x"]
    info = server.info()
    assert info["events_lost"] == info["queue_model_bytes"] == 0


def test_the_worker_leaves_with_the_server(server: Server) -> None:
    pid = server.worker_pid()
    server.stop(signal.SIGKILL)
    status = Path(f"/proc/{pid}/stat")  # gone, or a zombie that init has not collected
    until(lambda: not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_statistics_and_log_lines_of_the_worker_are_shown(server: Server) -> None:
    server.order("stats")
    assert server.info()["shoe_size"] == 44
    assert "worker: a line of the fake worker" in server.log


def test_replies_of_every_type_reach_resp2_and_resp3_clients(shared: tuple[Server, Server]) -> None:
    raw = b"*8\r\n+OK\r\n:-5\r\n$-1\r\n,1.5\r\n#t\r\n%1\r\n$1\r\nk\r\n:1\r\n~1\r\n:7\r\n=7\r\ntxt:abc\r\n"
    assert shared[0].order("raw", raw) == [b"OK", -5, None, b"1.5", 1, [b"k", 1], [7], b"abc"]
    three = shared[0].client(protocol=3).execute_command("RG.TRIGGER", "raw", raw)
    assert three[:4] == [b"OK", -5, None, 1.5]
    assert three[4] is True
    assert three[5] == {b"k": 1}
    assert list(three[6]) == [7]


def test_attributes_and_not_a_number_do_no_harm(shared: tuple[Server, Server]) -> None:
    raw = b"*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:5\r\n,nan\r\n"
    assert shared[0].order("raw", raw) == [5, None]
    nested = b"*2\r\n|1\r\n+a\r\n|1\r\n+b\r\n+c\r\n+d\r\n:5\r\n:6\r\n"
    assert shared[0].order("raw", nested) == [5, 6]


def test_an_unknown_error_code_is_not_a_new_entry_of_errorstats(shared: tuple[Server, Server]) -> None:
    assert shared[0].error("RG.TRIGGER", "raw", b"-MYCODE7 went wrong\r\n") == "ERR MYCODE7 went wrong"
    assert "errorstat_MYCODE7" not in shared[0].client().info("errorstats")
    assert shared[0].error("RG.TRIGGER", "raw", b"-WRONGTYPE no\r\n").startswith("WRONGTYPE")


def test_ten_thousand_requests_leave_nothing_behind(shared: tuple[Server, Server]) -> None:
    pipe = shared[0].client().pipeline(transaction=False)
    for i in range(10_000):
        pipe.execute_command("RG.TRIGGER", "echo", i)
    started = time.monotonic()
    assert pipe.execute()[-1] == [b"9999"]
    print(f"{(time.monotonic() - started) / 10_000 * 1e6:.0f} us a request")
    info = shared[0].info()
    assert info["pending_requests"] == info["waiting_clients"] == info["queue_bytes"] == 0


def test_what_nobody_was_told_can_be_changed_by_config(make: Make) -> None:
    server = make(arguments="MAXPENDING 3")
    names = {"heartbeat": "3000", "maxpending": "3", "model_chunk_size": "535822336", "model_file_bytes": "67108864"}
    client = server.client(decode_responses=True)
    assert client.config_get("shardqa.*") == {f"shardqa.{name}": value for name, value in names.items()}
    client.config_set("shardqa.maxpending", 5)
    assert server.info()["max_pending"] == 5
    with pytest.raises(redis.ResponseError, match="between 1 and 1000000"):
        client.config_set("shardqa.maxpending", 0)
    with pytest.raises(redis.ResponseError, match="Unknown option"):
        client.config_set("shardqa.sandbox", "no")
