"""AI.MODELEXECUTE against the same onnxruntime session called directly: batch 1 x 128 tokens, blocks in turn, one run.

Both sides use one thread and the same session options; the direct side runs here, at the worker's niceness. The
command goes over a bare socket, so that no client library is measured with it. What AI.MODELEXECUTE adds: a round
trip over loopback, the socket to the worker, and the tensors read from and written to keys: four times a process
wakes another one. A machine that does other work meanwhile shows more of it: each of them then waits.

A block is so many runs of one side; the ratio is that of the medians of a round of such blocks, and what is printed
first is the median of all rounds, with the smallest and the largest: a machine that is shared changes within minutes.
With blocks of one, a second copy of the network goes through the caches between
any two commands and drives Redis and worker out of them: printed as well, since a machine that is shared does so.

A PING that follows a direct run is printed as well: what a command costs that does nothing, asked of a Redis that slept
and by a caller whose caches the network has just gone through. It is the part of the overhead that no module can avoid.

With two connections the next request waits in the worker while one runs; the time a run then takes shows what of the
overhead is work, and what is waiting for idle processors to wake.
"""

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from common import OUTPUTS, direct_session, lone_nodes, port_of, seconds_of
from redis import Redis

from shardqa import machine, tensors
from shardqa.models import shipped
from shardqa.worker import resp
from shardqa.worker.__main__ import NICENESS

TOKENS = 128
RUNS = 500  # of each side, after a tenth as many to warm up
BLOCK = 20  # runs of one side, before it is the other's turn
ROUNDS = 5  # of blocks: the ratio of one alone differs by 0.01 from the next
BUSY_BLOCKS = 7  # of each side, for the time a run takes with two connections
BUSY_BLOCK = 40  # runs


def example() -> dict[str, Any]:
    ids = np.random.default_rng(7).integers(1000, 20000, (1, TOKENS))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def store(client: Redis, blob: bytes, feed: dict[str, Any]) -> None:
    client.execute_command("AI.MODELSTORE", "model", "ONNX", "CPU", "BLOB", blob)
    for name, array in feed.items():
        client.execute_command("AI.TENSORSET", name, "INT64", 1, TOKENS, "BLOB", tensors.encode(array)[2])


def sender(port: int, *words: str | int) -> Callable[[], bytes]:
    """Sends one command as it is and waits for its reply."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    message = b"*%d\r\n" % len(words) + b"".join(resp.bulk(str(word).encode()) for word in words)

    def send() -> bytes:
        sock.sendall(message)
        return sock.recv(4096)

    return send


def executor(port: int, session: Any) -> Callable[[], bytes]:
    names = [value.name for value in session.get_inputs()]
    words = ("INPUTS", len(names), *names, "OUTPUTS", len(OUTPUTS), *OUTPUTS)
    execute = sender(port, "AI.MODELEXECUTE", "model", *words)
    assert execute() == resp.OK
    return execute


def repeat(work: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        work()


def busy_ratio(port: int, session: Any) -> float:
    """Time a run takes with two connections, over the time of a direct run; median of blocks in turn."""
    feed, connections = example(), [executor(port, session) for _ in range(2)]

    def both() -> None:
        threads = [threading.Thread(target=repeat, args=(execute, BUSY_BLOCK // 2)) for execute in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def direct() -> None:
        repeat(lambda: session.run(None, feed), BUSY_BLOCK)

    ratios = [seconds_of(both) / seconds_of(direct) for _ in range(BUSY_BLOCKS)]
    return float(np.median(ratios))


def measure(session: Any, execute: Callable[[], Any], block: int) -> dict[str, float]:
    """Milliseconds of a call by side, medians."""
    feed = example()
    sides: dict[str, Callable[[], Any]] = {"direct": lambda: session.run(None, feed), "command": execute}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range((RUNS + RUNS // 10) // block):
        for side, work in sides.items():
            times[side] += [seconds_of(work) for _ in range(block)]
    return {side: float(np.median(spent[RUNS // 10 :])) * 1e3 for side, spent in times.items()}


def after_a_run(session: Any, ping: Callable[[], bytes]) -> float:
    """Milliseconds of a PING that follows a direct run, median."""
    feed, times = example(), []
    for _ in range(RUNS // 5):
        session.run(None, feed)
        times.append(seconds_of(ping))
    return float(np.median(times)) * 1e3


def print_ratio(what: str, rounds: list[dict[str, float]]) -> None:
    ratios = sorted(found["command"] / found["direct"] for found in rounds)
    direct, command = (np.median([found[side] for found in rounds]) for side in ("direct", "command"))
    spread = f" ({len(ratios)} rounds: {ratios[0]:.3f} to {ratios[-1]:.3f})" if len(ratios) > 1 else ""
    times = f"direct p50 {direct:.3f} ms, AI.MODELEXECUTE p50 {command:.3f} ms"
    print(f"  {what:22} {times}, {np.median(ratios):.3f}x{spread}")


def check_equal(client: Redis, session: Any) -> None:
    start = session.run(None, example())[0]
    stored = np.frombuffer(client.execute_command("AI.TENSORGET", OUTPUTS[0], "BLOB"), np.float32)
    assert np.allclose(stored, start.ravel(), atol=1e-4), "both sides must compute the same"


def main() -> None:
    blob = (shipped.folder() / "model.onnx").read_bytes()
    with lone_nodes() as (client,):
        os.nice(NICENESS)  # after the server, which would inherit it
        port, session = port_of(client), direct_session(blob)
        store(client, blob, example())
        execute = executor(port, session)
        blocks = [measure(session, execute, BLOCK) for _ in range(ROUNDS)]
        singly = measure(session, execute, 1)
        check_equal(client, session)
        ping = after_a_run(session, sender(port, "PING"))
        busy = busy_ratio(port, session)
    print(f"one run of the shipped reader, 1 x {TOKENS} tokens, {RUNS} each, {machine.label()} (wanted <= 1.05x)")
    print_ratio(f"blocks of {BLOCK} in turn", blocks)
    print_ratio("one of each in turn", [singly])
    print(f"  a PING after a direct run: p50 {ping:.3f} ms, {ping / singly['direct']:.3f} of a direct run")
    print(f"  a run with two connections in flight: {busy:.3f} of a direct run")


if __name__ == "__main__":
    main()
