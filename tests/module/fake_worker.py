"""A worker for tests of the module: speaks the frames, and misbehaves when it is told to.

Started by the module as `PYTHON -I -m shardqa.worker` through a wrapper script; its arguments are ignored. Every
`RG.TRIGGER <verb> …` is an order (methods `do_*`). It has its own small reading of the protocol on purpose: it must not
share mistakes with the real worker.
"""

import ctypes
import errno
import faulthandler
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections import deque
from typing import Any

HEADER = struct.Struct("<IBBHQ")
VERSION = 2
TO_WORKER = (
    "HELLO SESSION START REQUEST MISS EVENT MODELLOAD MODELDROP EXECUTE CANCEL CALLED ROLE RESYNC FORGET HOOK SYNC"
)
NAMES = {**dict(enumerate(TO_WORKER.split(), 1)), 32: "SCRIPT", 33: "DAG"}
REQUEST, CALLED = 4, 11
READY, REPLY, TENSORS, CALL, REGISTER, UNREGISTER, WATCH, LOG, STATS, RELEASE, PROGRESS, LOCK, UNLOCK = range(64, 77)
RAN, DAG_DONE = 80, 81
NAMED = "*2\r\n*1\r\n$1\r\nx\r\n*1\r\n$1\r\ny\r\n"  # the inputs and outputs of a model
OTHERS_NAMED = "*2\r\n*2\r\n$1\r\np\r\n$1\r\nq\r\n*0\r\n"
LOADED = {  # what MODELLOAD is answered, by the first word of the file
    "BAD": "-ERR this is no model\r\n",
    "TWO": "*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n",
    "LONG": f"*2\r\n*1\r\n$65537\r\n{'x' * 65537}\r\n*1\r\n$1\r\ny\r\n",
}
DEADLY = {b"KILLER": signal.SIGSEGV, b"HUGE": signal.SIGKILL}  # the second as the kernel ends what has no room


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


def pinged(descriptor: int) -> str:
    with socket.socket(fileno=descriptor) as connected:
        connected.setblocking(True)
        connected.sendall(b"PING\r\n")
        return connected.recv(100).decode().strip()


class Page:
    """The page shared with the module: heartbeat and one slot (docs/frames.md)."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(int(os.environ["SHARDQA_ACTIVITY_FD"]), 16384)
        threading.Thread(target=self.beat, daemon=True).start()

    def beat(self) -> None:
        count = 0
        while True:
            count += 1
            struct.pack_into("<Q", self.memory, 0, count)
            time.sleep(0.05)

    def show(self, kind: int, name: bytes, *, request: int = 0, subject: int = 0, deadline: float = 0) -> None:
        words = (kind, 0, request, subject, int(deadline * 1e6), len(name), name)
        struct.pack_into("<IIQQQI4x212s", self.memory, 256, *words)


class FakeWorker:
    def __init__(self) -> None:
        self.socket = socket.socket(fileno=3)
        self.peers = socket.socket(fileno=int(os.environ["SHARDQA_PEERS_FD"]))
        self.page = Page()
        faulthandler.register(signal.SIGUSR2, all_threads=True)
        self.inbox: deque[tuple[int, int, bytes]] = deque()
        self.seen: list[list[str]] = []  # frames so far, as text
        self.open_misses: list[tuple[int, bytes]] = []  # misses that wait for `release`
        self.miss_mode = "answer"
        self.misses = 0
        self.calls = 0
        self.dying_model = False
        self.late = b""  # CALLED of what ran after its request was answered

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

    def call(self, *commands: list[Any], context: str, flags: int = 0) -> bytes:
        """Runs commands in one frame; frames that come meanwhile wait their turn."""
        self.calls += 1
        items: list[Any] = [context, flags, len(commands)]
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

    def on_session(self, id: int, payload: bytes) -> None:
        """A session whose id begins with `evil` misbehaves when it is run again, unless the file `tame` is there."""
        session, *_ = unpack(payload)
        evil = not os.path.exists("tame") and session.startswith(b"evil") and id
        if evil:
            self.page.show(1, b"session " + session, request=id)
        if evil and session == b"evil-exit":
            os._exit(7)
        if evil and session == b"evil-loop":
            sum(range(10**12))
        if evil and session == b"evil-raise":
            self.page.show(0, b"")
            self.send(REPLY, id, b"-ERR ValueError: no\r\n")
        elif evil and session == b"evil-slow":
            self.page.show(0, b"")
            self.send(REPLY, id, b"-TIMEOUT the function was stopped: it ran too long, or its client left\r\n")
        elif id:
            self.send(REPLY, id, b"+OK\r\n")

    def on_miss(self, id: int, payload: bytes) -> None:
        self.misses += 1
        _user, registration, key, *_ = unpack(payload)
        if self.miss_mode == "hold":
            self.open_misses.append((id, key))
        elif self.miss_mode == "store":
            self.send(REPLY, id, bulk(b"value of " + key))
            session = registration.decode().rpartition("-")[0]  # the request has ended, and its rights with it
            self.call(["SET", key, b"value of " + key, "EX", "100"], context="s" + session)
        elif self.miss_mode == "nil":
            self.send(REPLY, id, b"$-1\r\n")
        elif self.miss_mode == "die":
            os._exit(5)
        else:
            self.send(REPLY, id, bulk(b"value of " + key))

    def lock(self, type: int, number: int) -> bytes:
        self.calls += 1
        self.send(type, self.calls, pack([number]))
        while True:
            kind, id, payload = self.read()
            if kind == CALLED and id == self.calls:
                return payload
            self.inbox.append((kind, id, payload))

    def do_section(self, id: int, number: bytes, inside: bytes, outside: bytes, seconds: bytes = b"0") -> None:
        """JSON commands: `outside` is sent while the section is open, before `inside`, and must wait for its end."""
        whose, section = f"r{id}", int(number)
        replies = self.lock(LOCK, section)
        items: list[Any] = [whose, 0, len(commands := json.loads(outside))]
        for command in commands:
            items += [len(command), *command]
        self.calls += 1
        late = self.calls
        self.send(CALL, late, pack(items))
        replies += self.call(*json.loads(inside), context=whose, flags=section)
        time.sleep(float(seconds))
        replies += self.call(*json.loads(inside), context=whose, flags=section)
        replies += self.lock(UNLOCK, section)
        replies += self.call(*json.loads(inside), context=whose, flags=section)
        waited = [payload for type, call, payload in self.inbox if (type, call) == (CALLED, late)]
        if not waited:
            while (frame := self.read())[:2] != (CALLED, late):
                self.inbox.append(frame)
            waited = [frame[2]]
        self.send(REPLY, id, array([replies, waited[0]]))

    def on_sync(self, id: int, payload: bytes) -> None:
        """RG.TRIGGER call JSON | hang | die | raw RESP"""
        number, _user, _command, verb, *words = unpack(payload)
        if verb == b"die":
            os._exit(5)
        if verb == b"call":
            self.send(REPLY, id, self.call(*json.loads(words[0]), context=f"r{id}", flags=int(number)))
        elif verb == b"raw":
            self.send(REPLY, id, words[0])

    def on_hook(self, id: int, payload: bytes) -> None:
        """A command whose last word is `keep` gets what Redis replied, another what its function says."""
        _user, count, *rest = unpack(payload)
        ids, rest = rest[: int(count)], rest[int(count) :]
        command = rest[1 : int(rest[0]) + 1]
        if self.miss_mode == "hold":
            self.open_misses.append((id, command[1]))
        elif self.miss_mode == "die":
            os._exit(5)
        elif self.miss_mode == "keep":
            self.send(REPLY, id, b"-KEEP\r\n")
        elif self.miss_mode == "next":
            self.send(REPLY, id, self.call([*command], context=f"r{id}"))
        else:
            self.send(REPLY, id, array([b"hooked", *ids, *command]))

    def on_modelload(self, id: int, payload: bytes) -> None:
        model, *_, blob = unpack(payload)
        word = blob[:20].split(b" ")[0]
        if word in DEADLY and not os.path.exists("tame"):
            self.page.show(2, b"model " + word, subject=int(model))
            os.kill(os.getpid(), DEADLY[word])
        if word == b"SLOW":
            wait_while_blocked()
        names = OTHERS_NAMED if os.path.exists("other-names") else NAMED
        self.send(REPLY, id, LOADED.get(word.decode("latin-1"), names).encode())

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
        elif tag == "surplus":
            self.send(TENSORS, id, pack([microseconds, layout + b";FLOAT 1", *data]))
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
        elif name == "RG.PYEXECUTE" and hasattr(self, "script_" + words[1].decode()):
            getattr(self, "script_" + words[1].decode())(id, *words[2:])
        elif name == "RG.UNREGISTER":
            self.do_unregister(id, words[1])
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

    def do_compute(self, id: int, count: bytes) -> None:
        """A loop inside C that keeps the interpreter's lock: nothing beats meanwhile."""
        self.page.show(1, b"a function\n that computes", request=id)
        sum(range(int(count)))
        self.page.show(0, b"")
        self.send(REPLY, id, b"+OK\r\n")

    def do_deadlock(self, id: int) -> None:
        """Sleeps inside C with the interpreter's lock: no beat, and no processor time."""
        self.page.show(1, b"a function that sleeps", request=id)
        ctypes.PyDLL(None).usleep(60_000_000)

    def do_show(self, id: int, kind: bytes, name: bytes, seconds: bytes, subject: bytes = b"0") -> None:
        """Says that it computes this, for so many seconds from now, and goes on."""
        self.page.show(int(kind), name, request=id, subject=int(subject), deadline=time.monotonic() + float(seconds))
        self.send(REPLY, id, b"+OK\r\n")

    def do_crash(self, id: int, name: bytes, *models: bytes) -> None:
        self.page.show(2, name, subject=int(models[0]) if models else 0)
        os.kill(os.getpid(), 11)

    def do_parts(self, id: int, count: bytes, after: bytes) -> None:
        """Says so often, a tenth of a second apart, that a part is done; `after` them it answers or hangs."""
        for _ in range(int(count)):
            time.sleep(0.1)
            self.send(PROGRESS, id, pack([]))
        if after == b"answers":
            self.send(REPLY, id, b"+OK\r\n")

    def do_peers(self, id: int, *nodes: bytes) -> None:
        """Asks for a connection to each; JSON of what PING gives there, or of the error."""
        for number, node in enumerate(nodes):
            self.peers.send(struct.pack("<Q", number) + node.ljust(40)[:40])
        answers: dict[int, str] = {}
        while len(answers) < len(nodes):
            data, descriptors, _, _ = socket.recv_fds(self.peers, 12, 1)
            number, error = struct.unpack("<Qi", data)
            answers[number] = errno.errorcode[error] if error else pinged(descriptors[0])
        self.send(REPLY, id, bulk(json.dumps([answers[number] for number in range(len(nodes))])))

    def do_peer_noise(self, id: int) -> None:
        with socket.socket() as own:
            for size in (0, 1, 47, 49, 4096):
                socket.send_fds(self.peers, [b"x" * size or b" "], [own.fileno()])
        self.send(REPLY, id, b"+OK\r\n")

    def do_peer_close(self, id: int) -> None:
        self.peers.send(struct.pack("<Q", 1) + b"f" * 40)
        self.peers.close()
        self.send(REPLY, id, b"+OK\r\n")

    def do_late(self, id: int, *_words: bytes) -> None:
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

    def do_bytes(self, id: int, frames: bytes) -> None:
        """Sends them as they are, then answers."""
        self.socket.sendall(frames)
        self.send(REPLY, id, b"+OK\r\n")

    def do_close(self, _id: int) -> None:
        self.socket.close()
        time.sleep(60)

    def do_call(self, id: int, commands: bytes, context: bytes = b"", flags: bytes = b"0") -> None:
        """JSON list of commands, with the caller's rights unless told otherwise; the reply is the bytes of CALLED."""
        whose = context.decode() or f"r{id}"
        self.send(REPLY, id, bulk(self.call(*json.loads(commands), context=whose, flags=int(flags))))

    def do_call_by_itself(self, id: int, commands: bytes) -> None:
        self.send(REPLY, id, bulk(self.call(*json.loads(commands), context="")))

    def do_call_after_reply(self, id: int, commands: bytes) -> None:
        """With the rights of the request that has just been answered; `late_reply` tells what became of it."""
        self.send(REPLY, id, b"+OK\r\n")
        self.late = self.call(*json.loads(commands), context=f"r{id}")

    def do_late_reply(self, id: int) -> None:
        self.send(REPLY, id, bulk(self.late))

    def do_read_late(self, id: int, key: bytes) -> None:
        wait_while_blocked()
        self.send(REPLY, id, bulk(self.call(["GET", key], context=f"r{id}")))

    # ---- scripts: RG.PYEXECUTE <name> … ----

    def script_call(self, id: int, commands: bytes) -> None:
        """Answers first, and goes on with its rights until it is released; see `late_reply`."""
        self.send(REPLY, id, b"+OK\r\n")
        self.late = self.call(*json.loads(commands), context=f"r{id}")
        self.send(RELEASE, id, pack([]))
        self.late += self.call(*json.loads(commands), context=f"r{id}")

    def script_register(
        self, id: int, session: bytes, registrations: bytes, claimed: bytes = b"default", code: bytes = b""
    ) -> None:
        """JSON list of [id, reader, prefix, trigger, events, key types, commands, mode]. With `code` it belongs to no
        script: `no` is the code that such a session has anyway."""
        wait_while_blocked()
        own = b"the code of " + session
        items: list[Any] = [session, claimed, own if code in (b"", b"no") else code]
        listed = json.loads(registrations)
        items.append(len(listed))
        for name, reader, prefix, trigger, events, types, commands, *mode in listed:
            items += [name, reader, *(mode or ["async"]), "", prefix, trigger]
            items += [len(events), *events, len(types), *types, len(commands), *commands]
        self.send(REGISTER, 0 if code else id, pack(items))
        self.send(REPLY, id, b"+OK\r\n")
        self.send(RELEASE, id, pack([]))

    # ---- more orders ----

    def do_unregister(self, id: int, name: bytes) -> None:
        self.send(UNREGISTER, 0, pack([name]))
        self.send(REPLY, id, b"+OK\r\n")

    def do_watch(self, id: int, prefix: bytes, *session: bytes) -> None:
        self.send(WATCH, 0, pack([prefix, *session]))
        self.send(REPLY, id, b"+OK\r\n")

    def do_misses(self, id: int, mode: bytes = b"") -> None:
        if mode:
            self.miss_mode = mode.decode()
        self.send(REPLY, id, b":%d\r\n" % self.misses)

    def do_release(self, id: int) -> None:
        for miss, key in self.open_misses:
            self.send(REPLY, miss, bulk(b"value of " + key))
        self.open_misses.clear()
        self.send(REPLY, id, b"+OK\r\n")

    def do_ran(self, id: int, *numbers: bytes) -> None:
        self.send(RAN, 0, pack(list(numbers)))
        self.send(REPLY, id, b"+OK\r\n")

    def do_stats(self, id: int) -> None:
        self.send(STATS, 0, pack(["shoe_size", "44"]))
        self.send(LOG, 0, pack(["warning", "a line of the fake worker"]))
        self.send(REPLY, id, b"+OK\r\n")


if __name__ == "__main__":
    FakeWorker().run()
