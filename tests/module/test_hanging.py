"""A worker that hangs is noticed, kept from clients, named and replaced; one that computes is given its time."""

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from .servers import Make, Server, until  # noqa: TID251 (this package is tests/module)


def stop(server: Server) -> int:
    pid = server.worker_pid()
    os.kill(pid, signal.SIGSTOP)
    return pid


def ask(server: Server, *words: object) -> Callable[[], str]:
    """Sends a trigger at once; its error is given by what this returns."""
    errors: list[str] = []
    thread = threading.Thread(target=lambda: errors.append(server.error("RG.TRIGGER", *words)))
    thread.start()

    def answer() -> str:
        thread.join(30)
        return errors[0]

    return answer


def test_a_stopped_worker_is_replaced_and_its_clients_are_told_long_before(make: Make) -> None:
    server = make(arguments="HEARTBEAT 2000")
    pid = stop(server)
    asked = ask(server, "echo", "x")
    until(lambda: server.info()["worker_state"] == "silent")
    assert asked().startswith("TRYAGAIN the worker of this node does not answer")
    assert server.error("RG.TRIGGER", "echo", "x").startswith("TRYAGAIN the worker of this node has not answered for")
    assert server.info()["worker_pid"] == pid  # it still has its two seconds
    assert server.client().set("x", "1")
    server.replaced(pid)
    info = server.info()
    assert (info["worker_killed_silent"], info["worker_silences"]) == (1, 1)
    assert info["worker_last_end"].startswith("it did not answer")
    assert "(it is stopped)" in server.log
    assert server.order("echo", "x") == [b"x"]
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_worker_that_goes_on_in_time_is_kept(make: Make) -> None:
    server = make(arguments="HEARTBEAT 60000")
    pid = stop(server)
    until(lambda: server.info()["worker_state"] == "silent")
    os.kill(pid, signal.SIGCONT)
    until(lambda: server.info()["worker_state"] == "ready")
    assert server.order("echo", "x") == [b"x"]
    assert server.info()["worker_pid"] == pid
    assert server.info()["worker_killed_silent"] == 0


def test_a_worker_that_loads_a_model_may_be_silent_for_longer(make: Make) -> None:
    server = make(arguments="HEARTBEAT 60000")
    assert server.order("show", 3, "a model that is loaded", "60") == b"OK"
    pid = stop(server)
    replies: list[object] = []
    thread = threading.Thread(target=lambda: replies.append(server.order("echo", "x")))
    thread.start()
    until(lambda: int(server.info()["worker_silent_ms"]) > 1500)
    assert server.info()["worker_state"] == "ready"
    os.kill(pid, signal.SIGCONT)
    thread.join(30)
    assert replies == [[b"x"]]


def test_with_heartbeat_0_a_silent_worker_is_left_alone(make: Make) -> None:
    server = make(arguments="HEARTBEAT 0 TIMEOUT 1500")
    pid = stop(server)
    assert server.error("RG.TRIGGER", "echo", "x").startswith("TIMEOUT")
    assert server.info()["worker_state"] == "ready"
    os.kill(pid, signal.SIGCONT)
    assert server.order("echo", "x") == [b"x"]


def test_a_deadlock_is_replaced_and_named(make: Make) -> None:
    server = make(arguments="HEARTBEAT 1000 TIMEOUT 60000")
    pid = server.worker_pid()
    asked = ask(server, "deadlock")
    assert asked().startswith("TRYAGAIN")
    server.replaced(pid)
    assert server.info()["worker_last_running"] == "a function that sleeps"
    assert "when the worker ended it was running: a function that sleeps" in server.log


def test_a_worker_that_computes_has_until_its_deadline_and_only_others_are_sent_away(make: Make) -> None:
    server = make(arguments="HEARTBEAT 1000 TIMEOUT 60000")
    pid, replies = server.worker_pid(), []
    thread = threading.Thread(target=lambda: replies.append(server.order("compute", 150_000_000)))
    thread.start()
    time.sleep(0.2)
    asked = ask(server, "echo", "x")
    assert asked().startswith("TRYAGAIN")
    thread.join(60)
    assert replies == [b"OK"]
    assert server.info()["worker_pid"] == pid


def test_a_worker_that_computes_past_its_deadline_is_replaced_and_named(make: Make) -> None:
    server = make(arguments="HEARTBEAT 1000 TIMEOUT 2000")
    pid = server.worker_pid()
    assert server.error("RG.TRIGGER", "compute", 10**12).startswith(("TIMEOUT", "TRYAGAIN"))
    server.replaced(pid)
    assert server.info()["worker_last_running"] == "a function? that computes"
    assert "it computes" in server.log
    assert "in do_compute" in server.log  # where it was, in its own last words


def test_a_function_past_its_deadline_costs_a_worker_that_beats(make: Make) -> None:
    server = make()
    pid = server.worker_pid()
    assert server.order("show", 1, "a function that swallows interrupts", "0.5") == b"OK"
    until(lambda: server.info()["worker_killed_late"] == 1)
    server.replaced(pid)
    assert "a function that swallows interrupts is past its deadline" in server.log


def test_a_function_within_its_deadline_and_one_without_any_go_on(make: Make) -> None:
    server = make()
    assert server.order("show", 1, "a function", "3600") == b"OK"
    time.sleep(1.5)
    assert server.info()["worker_restarts"] == 0


def test_what_a_worker_writes_about_itself_can_not_harm_the_server(make: Make) -> None:
    server = make()
    server.order("show", 1, b"\r\n$6\r\n\x00\xff" * 30, "3600")
    server.error("RG.TRIGGER", "die")
    until(lambda: server.info()["worker_restarts"] == 1)
    assert "\r" not in server.info()["worker_last_running"]
    assert server.info()["worker_state"] in ("starting", "ready")


def test_a_server_that_stood_still_does_not_take_its_worker_for_dead(make: Make) -> None:
    server = make(arguments="HEARTBEAT 1000")
    pid = server.worker_pid()
    for process in (pid, server.pid()):  # both, as in a machine that is suspended
        os.kill(process, signal.SIGSTOP)
    time.sleep(2)
    for process in (server.pid(), pid):
        os.kill(process, signal.SIGCONT)
    assert server.order("echo", "x") == [b"x"]
    server.client().execute_command("DEBUG", "SLEEP", "2")
    assert server.order("echo", "x") == [b"x"]
    assert server.info()["worker_pid"] == pid


@pytest.mark.parametrize("verb", ["die", "close", "garbage"])
def test_how_the_last_worker_ended_is_in_info(server: Server, verb: str) -> None:
    assert server.info()["worker_last_end"] == ""
    server.error("RG.TRIGGER", verb)
    ends = {"die": "exit status 3", "close": "it closed its socket", "garbage": "something that is no frame"}
    until(lambda: ends[verb] in server.info()["worker_last_end"])


def store(server: Server, key: str, blob: bytes) -> None:
    (server.folder / "tame").touch()
    assert server.client().execute_command("AI.MODELSTORE", key, "ONNX", "CPU", "BLOB", blob) == b"OK"
    (server.folder / "tame").unlink()


def executed(server: Server, key: str) -> str:
    """`OK`, or the error."""
    words = ["AI.MODELEXECUTE", key, "INPUTS", 1, "t", "OUTPUTS", 1, "o"]
    try:
        return str(server.client().execute_command(*words).decode())
    except Exception as error:  # noqa: BLE001 - the text is what matters
        return str(error)


def runs(server: Server, key: str) -> bool:
    return executed(server, key) == "OK"


def test_a_model_that_kills_the_worker_twice_is_in_quarantine_and_all_else_goes_on(server: Server) -> None:
    for key in ("one", "two", "three"):
        store(server, key, b"a file")
    store(server, "killer", b"KILLER file")
    server.client().execute_command("AI.TENSORSET", "t", "FLOAT", 1, "VALUES", 1)
    server.kill_worker()
    until(lambda: server.info()["models_quarantined"] == 1, 30)
    until(lambda: server.info()["worker_state"] == "ready")
    info = server.info()
    assert info["models_quarantined_keys"] == "killer"
    assert info["worker_restarts"] == 3  # the kill, and two of the model
    assert "is in quarantine" in executed(server, "killer")
    for key in ("one", "two", "three"):
        until(partial(runs, server, key))
    store(server, "killer", b"another file")
    assert executed(server, "killer") == "OK"
    until(lambda: server.info()["models_quarantined"] == 0)


def test_a_model_whose_load_gets_the_worker_killed_four_times_is_in_quarantine(server: Server) -> None:
    store(server, "huge", b"HUGE file")
    server.client().execute_command("AI.TENSORSET", "t", "FLOAT", 1, "VALUES", 1)
    server.kill_worker()
    server.restarted(5)  # that kill, and four of the loads
    assert server.info()["models_quarantined_keys"] == "huge"
    assert "the worker was killed whenever it loaded this model" in executed(server, "huge")


def test_a_model_that_crashes_when_it_runs_is_in_quarantine_after_the_second_time(server: Server) -> None:
    store(server, "m", b"a file")
    server.client().execute_command("AI.TENSORSET", "t", "FLOAT", 1, "VALUES", 1)
    for restarts in (1, 2):
        model = server.seen("MODELLOAD")[-1][2]
        assert server.error("RG.TRIGGER", "crash", "model m", model).startswith("TRYAGAIN")
        server.restarted(restarts)
        assert "signal 11" in server.info()["worker_last_end"]
        if restarts == 1:
            until(lambda: executed(server, "m") == "OK")
    assert "is in quarantine" in executed(server, "m")
    server.client().delete("m")
    until(lambda: server.info()["models_quarantined"] == 0)


def test_a_worker_killed_from_outside_blames_no_model_that_runs(server: Server) -> None:
    store(server, "m", b"a file")
    server.client().execute_command("AI.TENSORSET", "t", "FLOAT", 1, "VALUES", 1)
    for restarts in range(1, 7):
        server.order("show", 2, "model m", "3600", server.seen("MODELLOAD")[-1][2])
        server.kill_worker()
        server.restarted(restarts)
    assert executed(server, "m") == "OK"
