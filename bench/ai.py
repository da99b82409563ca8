"""The five figures of AI.*, each a ratio of two sides of one run; blocks of the sides in turn.

throughput    AI.MODELEXECUTE over 16 connections against onnxruntime called here in as many threads as the node runs
              at once (THREADS_PER_QUEUE 2); the shipped reader, 1 x 128 tokens
tensors       AI.TENSORSET and TENSORGET of 4 KB against SET and GET, one by one and pipelined
batching      8 requests of 20 to 200 tokens that come together, against the same one after another; with one run at
              once and with two
graph         AI.DAGEXECUTE of TENSORSET, MODELEXECUTE, TENSORGET against the three commands, and against onnxruntime
memory        four nodes that store one model (shared_model.py)

FIGURES="tensors graph" runs a part. ROUNDS, RUNS, LAYERS and NODES make all of it smaller, for tests.
"""

import multiprocessing
import os
import selectors
import socket
import statistics
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import shared_model
from common import OUTPUTS, direct_session, lone_nodes, port_of, seconds_of
from modelexecute import TOKENS, example
from redis import Redis

from shardqa import machine, tensors
from shardqa.models import shipped
from shardqa.worker import resp
from shardqa.worker.__main__ import NICENESS

ROUNDS = int(os.environ.get("ROUNDS", "9"))  # blocks of each side
RUNS = int(os.environ.get("RUNS", "64"))  # of the model in a block
CLIENTS = 16
AT_ONCE = 2  # runs
PIPELINE = 50
TENSOR = 4096  # bytes
BATCH = 8
LENGTHS = (20, 200)
WANTED = {"throughput": 0.93, "tensors": 0.7, "batching": 1.5}


@contextmanager
def node(*arguments: str) -> Iterator[Redis]:
    """Yields a client of a node; from here on this process is as nice as the worker: neither is preferred."""
    with lone_nodes(arguments=arguments) as (client,):
        os.nice(NICENESS)  # after the server, which would inherit it
        yield client


def encoded(*words: str | int | bytes) -> bytes:
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(map(resp.bulk, parts))


def set_tensors(client: Redis, feed: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Sets tensors and returns their keys."""
    for name, array in feed.items():
        dtype, _, data = tensors.encode(array)
        client.execute_command("AI.TENSORSET", prefix + name, dtype, *array.shape, "BLOB", data)
    return [prefix + name for name in feed]


def in_turn(sides: Mapping[str, Callable[[], Any]], calls: int = 1) -> dict[str, list[float]]:
    """Seconds of a call, the median of each block, after one of each to warm up."""
    for work in sides.values():
        work()
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(ROUNDS):
        for side, work in sides.items():
            times[side].append(statistics.median(seconds_of(work) for _ in range(calls)))
    return times


def ratio(times: Mapping[str, Sequence[float]], over: str, under: str) -> str:
    """Median of the rounds' own ratios, with the smallest and the largest."""
    found = sorted(a / b for a, b in zip(times[over], times[under], strict=True))
    return f"{statistics.median(found):.2f}x ({found[0]:.2f} to {found[-1]:.2f})"


# ---- throughput


class Connections:
    """Sends a command of its own on each connection, and again as soon as it is answered."""

    def __init__(self, port: int, messages: Sequence[bytes]) -> None:
        self._messages = messages
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in messages]
        self._selector = selectors.DefaultSelector()
        for number, sock in enumerate(self._sockets):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(sock, selectors.EVENT_READ, number)

    def run(self, count: int) -> None:
        begun_count = finished = 0
        for number in range(min(count, len(self._sockets))):
            self._sockets[number].sendall(self._messages[number])
            begun_count += 1
        while finished < count:
            for key, _ in self._selector.select():
                reply = key.fileobj.recv(65536)  # type: ignore[union-attr]
                assert reply.startswith(resp.OK), reply[:200]
                finished += 1
                if begun_count < count:
                    self._sockets[key.data].sendall(self._messages[key.data])
                    begun_count += 1

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


def in_threads(session: Any, feed: Mapping[str, Any], count: int) -> None:
    def repeat() -> None:
        for _ in range(count // AT_ONCE):
            session.run(None, feed)

    threads = [threading.Thread(target=repeat) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def throughput() -> None:
    blob = (shipped.folder() / "model.onnx").read_bytes()
    with node("THREADS_PER_QUEUE", str(AT_ONCE)) as client:
        session, feed = direct_session(blob), example()
        client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", blob)
        keys = set_tensors(client, feed)
        command: list[str | int] = ["AI.MODELEXECUTE", "m", "INPUTS", len(keys), *keys, "OUTPUTS", len(OUTPUTS)]
        messages = [encoded(*command, *(f"{name}{n}" for name in OUTPUTS)) for n in range(CLIENTS)]
        connections = Connections(port_of(client), messages)
        times = in_turn({"direct": lambda: in_threads(session, feed, RUNS), "command": lambda: connections.run(RUNS)})
        connections.close()
    print(f"  AI.MODELEXECUTE, {CLIENTS} connections, against onnxruntime in {AT_ONCE} threads, 1 x {TOKENS} tokens:")
    print(f"    throughput {ratio(times, 'direct', 'command')} of {RUNS} runs (wanted >= {WANTED['throughput']})")


# ---- tensors


def exchange(port: int) -> Callable[[bytes, int], None]:
    """Sends bytes and waits until so many have come back."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = bytearray(1 << 20)

    def send(message: bytes, expected: int) -> None:
        sock.sendall(message)
        while expected > 0:
            expected -= sock.recv_into(room)

    return send


def repeated(send: Callable[[bytes, int], None], expected: int, depth: int, message: bytes) -> None:
    for _ in range(max(1, RUNS * 100 // depth)):
        send(message * depth, expected * depth)


def tensor_figures() -> None:
    data = np.random.default_rng(1).bytes(TENSOR)
    shape = TENSOR // 4
    header = len(resp.bulk(data))
    pairs = {
        "AI.TENSORSET against SET": (
            encoded("AI.TENSORSET", "t", "FLOAT", shape, "BLOB", data),
            encoded("SET", "s", data),
            5,
        ),
        "AI.TENSORGET BLOB against GET": (encoded("AI.TENSORGET", "t", "BLOB"), encoded("GET", "s"), header),
    }
    with node() as client:
        send = exchange(port_of(client))
        for how, depth in (("one by one", 1), (f"{PIPELINE} in a pipeline", PIPELINE)):
            for name, (ours, plain, expected) in pairs.items():
                many = partial(repeated, send, expected, depth)
                times = in_turn({"plain": partial(many, plain), "ours": partial(many, ours)})
                print(f"  {name}, {TENSOR} bytes, {how}: {ratio(times, 'plain', 'ours')} the requests a second")
    print(f"    (wanted >= {WANTED['tensors']})")


# ---- batching


def mixed() -> list[dict[str, Any]]:
    dice = np.random.default_rng(3)
    found = []
    for length in np.linspace(*LENGTHS, BATCH).astype(int):
        ids = dice.integers(1000, 20000, (1, int(length)))
        found.append({"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})
    return found


def batching(runs: int) -> None:
    blob = (shipped.folder() / "model.onnx").read_bytes()
    feeds = mixed()
    names = list(feeds[0])
    with node("THREADS_PER_QUEUE", str(runs)) as client:
        port = port_of(client)
        client.execute_command("AI.MODELSTORE", "alone", "ONNX", "CPU", "BLOB", blob)
        words = ("BATCHSIZE", BATCH, "PADDED", len(names), *names)
        client.execute_command("AI.MODELSTORE", "padded", "ONNX", "CPU", *words, "BLOB", blob)
        keys = [set_tensors(client, feed, f"{n}:") for n, feed in enumerate(feeds)]
        apart, together = (Connections(port, runs_of(model, keys)) for model in ("alone", "padded"))
        send = exchange(port)

        def one_by_one() -> None:
            for message in runs_of("alone", keys):
                send(message, len(resp.OK))

        sides = {"one": one_by_one, "padded": lambda: together.run(BATCH), "apart": lambda: apart.run(BATCH)}
        times = in_turn(sides)
        check_lengths(client)
        for connections in (together, apart):
            connections.close()
    print(
        f"  {BATCH} requests of {LENGTHS[0]} to {LENGTHS[1]} tokens at once, against one by one, {runs} runs at once:"
    )
    print(f"    PADDED {ratio(times, 'one', 'padded')} as fast (wanted >= {WANTED['batching']})")
    print(f"    each a run of its own {ratio(times, 'one', 'apart')} as fast")


def runs_of(model: str, keys: Sequence[Sequence[str]]) -> list[bytes]:
    return [
        encoded("AI.MODELEXECUTE", model, "INPUTS", len(names), *names, "OUTPUTS", len(OUTPUTS), *outputs_of(model, n))
        for n, names in enumerate(keys)
    ]


def outputs_of(model: str, number: int) -> list[str]:
    return [f"{model}:{name}{number}" for name in OUTPUTS]


def check_lengths(client: Redis) -> None:
    for n in range(BATCH):
        one, other = (
            np.frombuffer(client.execute_command("AI.TENSORGET", outputs_of(model, n)[0], "BLOB"), np.float32)
            for model in ("alone", "padded")
        )
        assert one.shape == other.shape, "each request gets its outputs in its own length"


# ---- graphs


def graph() -> None:
    blob = (shipped.folder() / "model.onnx").read_bytes()
    feed = example()
    ids = tensors.encode(feed["input_ids"])[2]
    names = list(feed)
    with node() as client:
        session = direct_session(blob)
        client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", blob)
        set_tensors(client, feed)
        operations: list[tuple[str | int | bytes, ...]] = [
            ("AI.TENSORSET", "input_ids", "INT64", 1, TOKENS, "BLOB", ids),
            ("AI.MODELEXECUTE", "m", "INPUTS", len(names), *names, "OUTPUTS", len(OUTPUTS), *OUTPUTS),
            ("AI.TENSORGET", OUTPUTS[0], "BLOB"),
        ]
        messages = [encoded(*operation) for operation in operations]
        words = [word for operation in operations for word in ("|>", *operation)]
        whole = encoded("AI.DAGEXECUTE", "LOAD", len(names) - 1, *names[1:], "PERSIST", len(OUTPUTS), *OUTPUTS, *words)
        send = exchange(port_of(client))
        got = len(resp.bulk(bytes(TOKENS * 4)))
        expected = [5, 5, got]

        def three() -> None:
            for message, length in zip(messages, expected, strict=True):
                send(message, length)

        sides: dict[str, Callable[[], Any]] = {
            "direct": lambda: session.run(None, feed),
            "three commands": three,
            "one graph": lambda: send(whole, len(b"*3\r\n") + sum(expected)),
        }
        times = in_turn(sides, calls=max(1, RUNS // 4))
    print(f"  AI.DAGEXECUTE of {len(operations)} operations: 1 round trip for {len(operations)},")
    print(f"    {ratio(times, 'one graph', 'three commands')} their time, {ratio(times, 'one graph', 'direct')} that")
    print("    of the run in onnxruntime alone (wanted <= 1.1)")


FIGURES: dict[str, Callable[[], None]] = {
    "throughput": throughput,
    "tensors": tensor_figures,
    "batching": partial(batching, 1),
    "batching2": partial(batching, AT_ONCE),
    "graph": graph,
    "memory": shared_model.main,
}


def main() -> None:
    print(f"AI.*, {machine.label()}, medians of {ROUNDS} rounds, with the least and the most", flush=True)
    failed = []
    for name in os.environ.get("FIGURES", " ".join(FIGURES)).split():
        process = multiprocessing.get_context("fork").Process(target=FIGURES[name])  # each is nice by itself
        process.start()
        process.join()
        failed += [name] if process.exitcode else []
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
