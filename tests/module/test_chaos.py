"""Requests, misses, executions and writes at once, while the worker dies, clients leave and writing is paused."""

import os
import random
import signal
import threading
import time
from contextlib import suppress
from typing import Any

import redis

from .servers import Server, in_sync, until  # noqa: TID251 (this package is tests/module)

SECONDS = float(os.environ.get("SHARDQA_CHAOS_SECONDS", "3"))
# redis-py cuts the code off; the sentences name the worker
EXPECTED = ("TRYAGAIN", "BUSY", "TIMEOUT", "worker", "empty")


class Load:
    """Clients that do one thing each until the time is over; unexpected errors are kept."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.until = time.monotonic() + SECONDS
        self.unexpected: list[str] = []
        self.done = 0

    def client(self, seed: int) -> None:
        chance = random.Random(seed)
        client = self.server.client()
        while time.monotonic() < self.until:
            try:
                self.step(client, chance)
                self.done += 1
            except redis.ResponseError as error:
                if not any(word in str(error) for word in EXPECTED):
                    self.unexpected.append(str(error))

    def step(self, client: Any, chance: random.Random) -> None:
        key = f"answer:{chance.randrange(20)}"
        match chance.randrange(7):
            case 0:
                client.execute_command("RG.TRIGGER", "echo", "x" * chance.randrange(100_000))
            case 1 | 2:
                assert client.get(key) in (None, b"value of " + key.encode())
            case 3:
                client.execute_command("AI.MODELEXECUTE", "m", "INPUTS", 1, "t", "OUTPUTS", 1, "o")
            case 4:
                client.delete(key)
            case 5:
                client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "z" * chance.randrange(1_000_000))
            case 6:
                connection = self.server.send("GET", key)
                connection.disconnect()

    def trouble(self) -> None:
        chance = random.Random(7)
        client = self.server.client()
        while time.monotonic() < self.until:
            time.sleep(chance.random() / 4)
            if chance.random() < 0.5:
                client.client_pause(chance.randrange(100), all=False)
            elif pid := self.server.info()["worker_pid"]:  # 0 would be our own process group
                with suppress(ProcessLookupError):  # its end was seen since INFO
                    os.kill(pid, signal.SIGKILL)


def test_under_load_with_deaths_and_pauses_nothing_is_lost_or_left_behind(pair: tuple[Server, Server]) -> None:
    master, replica = pair
    master.hook(mode="store")
    client = master.client()
    client.execute_command("AI.TENSORSET", "t", "FLOAT", 2, "VALUES", 1, 2)
    client.execute_command("AI.MODELSTORE", "m", "ONNX", "CPU", "BLOB", "bytes")
    load = Load(master)
    threads = [threading.Thread(target=load.client, args=(i,)) for i in range(8)]
    threads.append(threading.Thread(target=load.trouble))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not load.unexpected
    until(lambda: master.info()["worker_state"] == "ready", 15)
    until(lambda: master.info()["models"] == 1)
    info = master.info()
    assert info["waiting_clients"] == info["pending_requests"] == info["pending_misses"] == 0
    assert info["queue_bytes"] == info["held_bytes"] == info["deferred_bytes"] == 0
    in_sync(master, replica)
    until(lambda: client.execute_command("DEBUG", "DIGEST") == replica.client().execute_command("DEBUG", "DIGEST"))
    print(f"{load.done} commands, {info['worker_restarts']} deaths")
