"""A session: a script of RG.PYEXECUTE, and what it leaves registered.

What a script registers, watches or wants to run is only collected while it runs (script_run.py), and committed as a
whole afterwards (sessions.py).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shardqa.worker.calls import Command, Rights, follow
from shardqa.worker.gears.interpreters.interpreter import Interpreter
from shardqa.worker.gears.pipeline.inner_commands import InnerCommands
from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.pipeline.run import current
from shardqa.worker.gears.pipeline.worker_log import WorkerLog
from shardqa.worker.gears.registrations.prefix_watches import Watch
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions.requirements import base_of, marked

NextId: TypeAlias = Callable[[Registration], str]
StartRun: TypeAlias = "Callable[[Session, RunPlan], Any]"
Register: TypeAlias = "Callable[[Session, Registration, list[Callable[[], Any]]], None]"


@dataclass(slots=True)
class SessionHost:
    """The parts of the worker that all sessions use."""

    log: WorkerLog
    commands: InnerCommands
    start_run: StartRun | None = None  # inside a function, as `register`; of what is built later
    register: Register | None = None
    interpreter_of: Callable[[str], Interpreter | None] = lambda _: None  # by the base of requirements


class Session:
    """A script and what it registers. Written by the pool's thread while it runs, by the loop's thread afterwards."""

    def __init__(self, id: str, rights: Rights, code: str, next_id: NextId, host: SessionHost) -> None:
        self.id = id
        self.rights = rights  # of the request that runs the script; once it is stored, its own
        self.code = code
        self.next_id = next_id
        self.description: str | None = None
        self.registrations: list[Registration] = []
        self.removed: list[Registration] = []  # of them, since
        self.watches: list[Watch] = []
        self.plan: RunPlan | None = None  # of a run at the script's top level
        self.names: Mapping[str, Any] = {}  # that the worker gives to the script
        self.globals: dict[str, Any] = {}  # of its functions, here: what comes from other shards finds its variables
        # Whose variables its functions have: the session whose function registered this one.
        self.origin: Session = self
        self.requirements: tuple[str, ...] = ()
        self.on_registered: list[Callable[[], Any]] = []
        self.stored = code  # what a replay begins with: the script, or what travelled (distribution.py)
        self.is_new = False  # its script runs for a client, and was not stored before; or its functions run
        self._host = host
        self._committed = False
        self._noted: set[str] = set()

    def require(self, requirements: Sequence[str]) -> None:
        """Takes the session's requirements, which are installed."""
        self.requirements = tuple(requirements)
        self.stored = marked(self.requirements, self.stored)

    def interpreter_of(self, base: str = "") -> Interpreter | None:
        """Returns the interpreter of a list of requirements, its own by default; None: it runs in the worker."""
        return self._host.interpreter_of(base or base_of(self.requirements))

    @property
    def user(self) -> str:
        return self.rights.user

    @property
    def file(self) -> str:
        """The name of the script in tracebacks."""
        return f"<session {self.id}>"

    def rights_now(self) -> Rights:
        """Returns the rights of the function that runs in this task or thread; else the session's own."""
        run = current()
        return self.rights if run is None else run.rights

    def execute(self, command: Command) -> Any:
        """Runs one Redis command. Raises redis.ResponseError."""
        return self._host.commands.execute(self.rights_now(), command)

    def run(self, plan: RunPlan) -> Any:
        if self._committed:
            assert self._host.start_run is not None, "functions run after the worker is built"
            return self._host.start_run(self, plan)
        if self.plan is not None:
            raise RuntimeError(
                "Can not run more then 1 executions in a single script; send the second run in a script of its own"
            )
        self.plan = plan
        return None

    def register(self, registration: Registration, on_registered: Callable[[], Any] | None) -> None:
        check_text(*registration.wire())
        functions = [] if on_registered is None else [on_registered]
        if self._committed:
            assert self._host.register is not None, "functions run after the worker is built"
            self._host.register(self, registration, functions)
        elif registration.id:  # else a replay of what was unregistered since
            self._demand(registration.follows())
            self.registrations.append(registration)
            self.on_registered += functions

    def _demand(self, command: Command | None) -> None:
        """Checks a new script's rights; a stored one keeps its functions, and the module judges each key."""
        if self.is_new and command is not None:
            self._host.commands.demand(self.rights, command)

    def note(self, text: str) -> None:
        """Logs, once a script, what its author may not have meant and RedisGears ignores in silence."""
        if text not in self._noted:
            self._noted.add(text)
            self._host.log(f"session {self.id}: {text}")

    def watch(self, watch: Watch) -> None:
        if self._committed:
            raise RuntimeError("watch belongs at the script's top level, not inside a function")
        check_text(watch.prefix)
        self._demand(follow("r", f"{watch.prefix}*"))
        self.watches.append(watch)

    def commit(self) -> None:
        """Ends the collecting: from now on only the session's functions run."""
        self._committed = self.is_new = True

    def remember_lines(self) -> None:
        """Keeps the script for tracebacks."""
        linecache.cache[self.file] = (len(self.code), None, self.code.splitlines(True), self.file)

    def forget_lines(self) -> None:
        linecache.cache.pop(self.file, None)


def check_text(*texts: Any) -> None:
    """Raises TypeError and ValueError for texts that no frame can carry: a script that fails half-way would leave
    registrations that nobody can remove."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a name or description wants a string, not {type(text).__name__}")
        try:
            text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError(f"{text!a} holds half a character; give whole ones") from None
