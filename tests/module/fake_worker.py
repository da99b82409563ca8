"""A worker for tests of the module: speaks the frames, and misbehaves when it is told to.

Started by the module as `PYTHON -I -m shardqa.module.worker` through a wrapper script; its arguments are ignored. Every
`RG.TRIGGER <verb> …` is an order (methods `do_*`). It has its own small reading of the protocol on purpose: it must not
share mistakes with the real worker.
"""

import json
import os
import socket
import struct
import sys
import time
from collections import deque
from typing import Any

HEADER = struct.Struct("<IBBHQ")
VERSION = 2
HELLO, SESSION, START, REQUEST, MISS, EVENT, MODELLOAD, MODELDROP, EXECUTE, CANCEL, CALLED, ROLE, RESYNC = range(1, 14)
READY, REPLY, TENSORS, CALL, REGISTER, UNREGISTER, WATCH, LOG, STATS = range(64, 73)
NAMES = {
    HELLO: "HELLO",
    SESSION: "SESSION",
    START: "START",
    REQUEST: "REQUEST",
    MISS: "MISS",
    EVENT: "EVENT",
    MODELLOAD: "MODELLOAD",
    MODELDROP: "MODELDROP",
    EXECUTE: "EXECUTE",
    CANCEL: "CANCEL",
    CALLED: "CALLED",
    ROLE: "ROLE",
    RESYNC: "RESYNC",
}


def pack(items: list[Any]) -> bytes:
    raw = [str(i).encode() if isinstance(i, int | str) else i for i in items]
    return struct.pack("<I", len(raw)) + b"".join(struct.pack("<I", len(r)) + r for r in raw)


def unpack(payload: bytes) -> list[bytes]:
    items, at = [], 4
    for _ in range(struct.unpack_from("<I", payload)[0]):
        (size,) = struct.unpack_from("<I", payload, at)
        items.append(payload[at + 4 : at + 4 + size])
        at += 4 + size
    return items


def bulk(value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return b"$%d\r\n%b\r\n" % (len(raw), raw)


def array(items: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(items) + b"".join(bulk(i) for i in items)


def wait_while_blocked() -> None:
    """Until the test has removed the file `blocked` (Server.block, Server.unblock); a minute at most."""
    until = time.monotonic() + 60
    while os.path.exists("blocked") and time.monotonic() < until:
        time.sleep(0.002)


class FakeWorker:
    def __init__(self) -> None:
        self.socket = socket.socket(fileno=3)
        self.inbox: deque[tuple[int, int, bytes]] = deque()
        self.seen: list[list[str]] = []  # frames so far, as text
        self.held: list[tuple[int, bytes]] = []  # misses that wait for `release`
        self.miss_mode = "answer"
        self.misses = 0
        self.calls = 0
        self.dying_model = False

    # ---- frames ----

    def send(self, type: int, id: int, payload: bytes) -> None:
        self.socket.sendall(HEADER.pack(len(payload), type, 0, VERSION, id) + payload)

    def read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            got = self.socket.recv(min(size - len(data), 1 << 20))
            if not got:
                os._exit(0)
            data += got
        return bytes(data)

    def read(self) -> tuple[int, int, bytes]:
        size, type, _, _, id = HEADER.unpack(self.read_exactly(16))
        return type, id, self.read_exactly(size)

    def call(self, *commands: list[Any], user: str = "") -> bytes:
        """Runs commands in one frame; frames that come meanwhile wait their turn."""
        self.calls += 1
        items: list[Any] = [user, 0, len(commands)]
        for command in commands:
            items += [len(command), *command]
        self.send(CALL, self.calls, pack(items))
        while True:
            type, id, payload = self.read()
            if type == CALLED and id == self.calls:
                return payload
            self.inbox.append((type, id, payload))

    # ---- the loop ----

    def run(self) -> None:
        while True:
            type, id, payload = self.inbox.popleft() if self.inbox else self.read()
            self.note(type, id, payload)
            getattr(self, "on_" + NAMES[type].lower(), lambda *_: None)(id, payload)

    def note(self, type: int, id: int, payload: bytes) -> None:
        if type in (REQUEST, CALLED):
            return
        words = [] if len(payload) < 4 else [w[:200].decode("latin-1") for w in unpack(payload)]
        self.seen.append([NAMES[type], str(id), *words])

    def on_start(self, _id: int, _payload: bytes) -> None:
        if os.path.exists("never-ready"):
            return
        self.send(READY, 0, pack([VERSION, os.getpid(), "python fake"]))

    def on_miss(self, id: int, payload: bytes) -> None:
        self.misses += 1
        _user, _registration, key, *_ = unpack(payload)
        if self.miss_mode == "hold":
            self.held.append((id, key))
        elif self.miss_mode == "store":
            self.send(REPLY, id, bulk(b"value of " + key))
            self.call(["SET", key, b"value of " + key, "EX", "100"])
        elif self.miss_mode == "nil":
            self.send(REPLY, id, b"$-1\r\n")
        elif self.miss_mode == "die":
            os._exit(5)
        else:
            self.send(REPLY, id, bulk(b"value of " + key))

    def on_modelload(self, id: int, payload: bytes) -> None:
        blob = unpack(payload)[8]
        if blob.startswith(b"BAD"):
            self.send(REPLY, id, b"-ERR this is no model\r\n")
        elif blob.startswith(b"SLOW"):
            wait_while_blocked()
            self.send(REPLY, id, b"*2\r\n*1\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n")
        elif blob.startswith(b"LONG"):
            self.send(REPLY, id, b"*2\r\n*1\r\n$65537\r\n%b\r\n*1\r\n$1\r\ny\r\n" % (b"x" * 65537))
        elif blob.startswith(b"TWO"):
            self.send(REPLY, id, b"*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n")
        else:
            self.send(REPLY, id, b"*2\r\n*1\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n")

    def on_execute(self, id: int, payload: bytes) -> None:
        """The identity: outputs are the inputs. The tag of a model tells it to misbehave."""
        head, *data = unpack(payload)
        model, _timeout, _outputs, layout = head.split(b" ", 3)
        tag = next((s[5] for s in reversed(self.seen) if s[0] == "MODELLOAD" and s[2] == model.decode()), "?")
        microseconds = struct.pack("<Q", 1234)
        if tag == "hang":
            return
        if tag == "die":
            os._exit(6)
        if tag == "fail":
            self.send(REPLY, id, b"-ERR the model failed\r\n")
        elif tag == "wrong":
            self.send(TENSORS, id, pack([microseconds, "FLOAT 3", b"\0\0\0\0"]))
        elif tag == "extra":
            self.send(TENSORS, id, pack([microseconds, layout + b";FLOAT 1", *data, b"\0\0\0\0"]))
        else:
            self.send(TENSORS, id, pack([microseconds, layout, *data]))

    def on_request(self, id: int, payload: bytes) -> None:
        user, *words = unpack(payload)
        name = words[0].decode().upper()
        if name in ("RG.TRIGGER", "RG.TRIGGERONKEY"):
            verb = getattr(self, "do_" + words[1].decode(), None)
            if verb is None:
                self.send(REPLY, id, b"-ERR trigger " + words[1] + b" is not registered\r\n")
            else:
                verb(id, *words[2:])
        else:
            self.send(REPLY, id, array([user, *words]))

    # ---- orders ----

    def do_echo(self, id: int, *words: bytes) -> None:
        self.send(REPLY, id, array(list(words)))

    def do_raw(self, id: int, reply: bytes) -> None:
        self.send(REPLY, id, reply)

    def do_seen(self, id: int) -> None:
        self.send(REPLY, id, bulk(json.dumps(self.seen)))

    def do_pid(self, id: int) -> None:
        self.send(REPLY, id, b":%d\r\n" % os.getpid())

    def do_hang(self, _id: int, *_words: bytes) -> None:
        return

    def do_late(self, id: int) -> None:
        wait_while_blocked()
        self.send(REPLY, id, b"+OK\r\n")

    def do_die(self, _id: int) -> None:
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)

    def do_garbage(self, _id: int) -> None:
        self.socket.sendall(b"this is no frame, and it is longer than sixteen bytes")
        time.sleep(60)

    def do_giant(self, _id: int) -> None:
        self.socket.sendall(HEADER.pack((1 << 30) + 1, REPLY, 0, VERSION, 1))
        time.sleep(60)

    def do_cut(self, _id: int) -> None:
        self.socket.sendall(HEADER.pack(1000, REPLY, 0, VERSION, 1) + b"half")
        os._exit(0)

    def do_wrong_frame(self, _id: int, type: bytes, payload: bytes) -> None:
        self.send(int(type), 1, payload)
        time.sleep(60)

    def do_close(self, _id: int) -> None:
        self.socket.close()
        time.sleep(60)

    def do_call(self, id: int, commands: bytes, user: bytes = b"") -> None:
        """JSON list of commands; the reply is the raw bytes of CALLED."""
        self.send(REPLY, id, bulk(self.call(*json.loads(commands), user=user.decode())))

    def do_read_late(self, id: int, key: bytes) -> None:
        wait_while_blocked()
        self.send(REPLY, id, bulk(self.call(["GET", key])))

    def do_write_after_reply(self, id: int, key: bytes, value: bytes) -> None:
        self.send(REPLY, id, bulk(value))
        self.call(["SET", key, value])

    def do_register(self, id: int, session: bytes, registrations: bytes, user: bytes = b"default") -> None:
        """JSON list of [id, reader, prefix, trigger, events, key types, commands]."""
        items: list[Any] = [session, user, "the code of " + session.decode()]
        listed = json.loads(registrations)
        items.append(len(listed))
        for name, reader, prefix, trigger, events, types, commands in listed:
            items += [name, reader, "async", "", prefix, trigger]
            items += [len(events), *events, len(types), *types, len(commands), *commands]
        self.send(REGISTER, 0, pack(items))
        self.send(REPLY, id, b"+OK\r\n")

    def do_unregister(self, id: int, name: bytes) -> None:
        self.send(UNREGISTER, 0, pack([name]))
        self.send(REPLY, id, b"+OK\r\n")

    def do_watch(self, id: int, prefix: bytes) -> None:
        self.send(WATCH, 0, pack([prefix]))
        self.send(REPLY, id, b"+OK\r\n")

    def do_misses(self, id: int, mode: bytes = b"") -> None:
        if mode:
            self.miss_mode = mode.decode()
        self.send(REPLY, id, b":%d\r\n" % self.misses)

    def do_release(self, id: int) -> None:
        for miss, key in self.held:
            self.send(REPLY, miss, bulk(b"value of " + key))
        self.held.clear()
        self.send(REPLY, id, b"+OK\r\n")

    def do_stats(self, id: int) -> None:
        self.send(STATS, 0, pack(["shoe_size", "44"]))
        self.send(LOG, 0, pack(["warning", "a line of the fake worker"]))
        self.send(REPLY, id, b"+OK\r\n")


FakeWorker().run()
