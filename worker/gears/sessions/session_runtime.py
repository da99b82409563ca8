"""The worker's side of runtime.py, for one session."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from shardqa.worker.activity import Activity, ActivityKind
from shardqa.worker.ai import copying
from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.calls import Calls, first, follow
from shardqa.worker.gears.pipeline.run import current
from shardqa.worker.gears.registrations.prefix_watches import Watch
from shardqa.worker.gears.sessions.session import Session
from shardqa.worker.nodes import Cluster
from shardqa.worker.runtime import Argument, KeyEvent, Reply
from shardqa.worker.statistics import WorkerStatistics

Log = Callable[[str, str], None]


@dataclass(eq=False)
class SessionRuntime:
    """Implements runtime.Runtime; calls have the rights of `Session.rights_now`."""

    _session: Session
    _calls: Calls
    _cluster: Cluster
    _models: FunctionRuns
    _statistics: WorkerStatistics
    _log: Log
    _activity: Activity

    async def call(self, *args: Argument) -> Reply:
        return first(await self.calls([args]))

    async def calls(self, commands: Sequence[Sequence[Argument]], quiet: bool = False) -> list[Reply | Exception]:
        rights = self._session.rights_now()
        return await self._calls.run_async(rights.quiet() if quiet else rights, commands)

    async def demand(self, *commands: Sequence[Argument]) -> None:
        for denial in await self._checked(commands):
            if isinstance(denial, Exception):
                raise denial

    async def may(self, commands: Sequence[Sequence[Argument]]) -> list[bool]:
        denials = await self._checked(commands)
        for denial in denials:
            if isinstance(denial, Exception) and not str(denial).startswith("NOPERM"):
                raise denial  # nobody may now: the node is cut from its cluster
        return [not isinstance(denial, Exception) for denial in denials]

    async def _checked(self, commands: Sequence[Sequence[Argument]]) -> list[Reply | Exception]:
        run = current()
        caller = self._session.rights if run is None else run.caller
        return await self._calls.check(caller, commands) if commands else []

    def hashtag(self) -> str:
        return self._cluster.hashtag()

    def role(self) -> str:
        return self._cluster.role

    def watch(
        self,
        prefix: str,
        changed: Callable[[Sequence[KeyEvent]], Awaitable[None]],
        resync: Callable[[str], Awaitable[None]],
    ) -> None:
        def allowed(callback: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
            async def judged(what: Any) -> None:
                first(await self._calls.check(self._session.rights, [follow("r", f"{prefix}*")]))
                await callback(what)

            return judged

        self._session.watch(Watch(self._session.id, prefix, allowed(changed), allowed(resync)))

    async def run_model(
        self, key: str, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str]
    ) -> dict[str, NDArray[Any]]:
        return await self._models.run(key, inputs, outputs)

    async def model_note(self, key: str, name: str) -> str:
        return self._models.stored.at(key).note(name)

    def model_tag(self, key: str) -> str | None:
        return self._models.stored.tag_of(key)

    def models_above(self, size: int) -> list[str]:
        return self._models.stored.above(size)

    async def copy_model(self, key: str, to: str) -> None:
        await copying.copy_model(self._cluster, self._models.stored, self.call, key, to)

    async def peers(self, *args: Argument) -> list[Reply | Exception]:
        return await self._cluster.ask_peers(args)

    def owns(self, key: str) -> bool:
        return self._cluster.owns(key)

    async def on_owner(self, key: str, *args: Argument) -> Reply:
        return await self._cluster.ask_owner(key, args)

    def progress(self) -> None:
        run = current()
        if run is not None:
            run.progress()

    @contextmanager
    def shown(self, name: str, loads: bool = False) -> Iterator[None]:
        slot = self._activity.begin(ActivityKind.LOAD if loads else ActivityKind.FUNCTION, name.encode())
        try:
            yield
        finally:
            self._activity.end(slot)

    def log(self, text: str, level: str = "notice") -> None:
        self._log(text, level)

    def stat(self, name: str, value: int | float | str) -> None:
        self._statistics.set(name, value)
