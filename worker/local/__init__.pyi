"""What a script of RG.PYEXECUTE finds as globals, typed: `from shardqa.gears import GB, execute`.

In the worker the import gives the same objects. docs/gears.md says what each does.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Literal, NoReturn, Self, TypeAlias

from shardqa.worker.runtime import Runtime

Argument: TypeAlias = bytes | str | int | float
_Reader: TypeAlias = Literal[
    "KeysReader", "KeysOnlyReader", "StreamReader", "CommandReader", "PythonReader", "ShardsIDReader"
]
_Mode: TypeAlias = Literal["async", "async_local", "sync"]
_Function: TypeAlias = Callable[[Any], Any]
_Fold: TypeAlias = Callable[[Any, Any], Any]
_FoldBy: TypeAlias = Callable[[Any, Any, Any], Any]

class GearsBuilder:
    """Steps over the records of a reader; `run` or `register` says when they are to happen."""

    def __init__(self, reader: _Reader = "KeysReader", defaultArg: Any = "*", desc: str | None = None) -> None:
        """`defaultArg`: a pattern of keys, or what else the reader reads."""
    def map(self, function: _Function) -> Self:
        """Each record becomes `function(record)`."""
    def flatmap(self, function: _Function) -> Self:
        """Each record becomes the records of the list that `function(record)` gives."""
    def filter(self, function: _Function) -> Self:
        """Keeps the records for which `function(record)` is true."""
    def foreach(self, function: _Function) -> Self:
        """Calls `function(record)`; the records go on as they are."""
    def accumulate(self, function: _Fold) -> Self:
        """One record a shard: `function(accumulator, record)` gives the accumulator, which is None at first."""
    def localgroupby(self, extractor: _Function, reducer: _FoldBy) -> Self:
        """On each shard one record {'key', 'value'} a key; `reducer(key, accumulator, record)`."""
    def limit(self, length: int, start: int = 0) -> Self:
        """At most `length` records of each shard, from the `start`-th on; behind `collect`, of all."""
    def collect(self) -> Self:
        """Moves all records to the shard that the run was sent to."""
    def repartition(self, extractor: _Function) -> Self:
        """Moves every record to the shard that owns the slot of `extractor(record)`."""
    def aggregate(self, zero: Any, local: _Fold, combine: _Fold) -> Self:
        """One record of all: `local(accumulator, record)` on each shard, then `combine(accumulator, part)`."""
    def aggregateby(self, extractor: _Function, zero: Any, local: _FoldBy, combine: _FoldBy) -> Self:
        """One record {'key', 'value'} a key; both functions get (key, accumulator, record)."""
    def groupby(self, extractor: _Function, reducer: _FoldBy) -> Self:
        """One record {'key', 'value'} a key; `reducer(key, accumulator, record)`."""
    def batchgroupby(self, extractor: _Function, reducer: Callable[[Any, list[Any]], Any]) -> Self:
        """The same; `reducer(key, records)` gets all records of a key at once."""
    def count(self) -> Self:
        """One record: how many there are."""
    def countby(self, extractor: _Function = ...) -> Self:
        """One record {'key', 'value'} a key: how many there are of it."""
    def avg(self, extractor: Callable[[Any], float] = ...) -> Self:
        """One record: the mean of `extractor(record)`."""
    def sort(self, reverse: bool = True) -> Self:
        """All records in order, the greatest first."""
    def distinct(self) -> Self:
        """Each record once, in order of arrival."""
    def run(
        self,
        arg: Any = None,
        convertToStr: bool = True,
        collect: bool = True,
        mode: _Mode = "async",
        *,
        prefix: str = ...,
        noScan: bool = ...,
        readValue: bool = ...,
        pattern: str = ...,
        count: int = ...,
        patternGenerator: Callable[[], tuple[str, bool]] = ...,
        fromId: str = ...,
    ) -> Awaitable[list[Any]]:
        """Runs at the end of the script; inside a function at once, and awaited it gives [results, errors]."""
    def register(
        self,
        prefix: str = "*",
        convertToStr: bool = True,
        collect: bool = True,
        mode: _Mode = "async",
        onRegistered: Callable[[], Any] | None = None,
        *,
        eventTypes: Iterable[str] | None = ...,
        keyTypes: Iterable[str] | None = ...,
        commands: Iterable[str] | None = ...,
        readValue: bool | None = ...,
        regex: str | None = ...,
        noScan: bool | None = ...,
        batch: int = ...,
        duration: int = ...,
        onFailedPolicy: Literal["continue", "abort", "retry"] = ...,
        onFailedRetryInterval: float = ...,
        trimStream: bool = ...,
        trigger: str | None = ...,
        inorder: bool = ...,
        hook: str = ...,
        keyprefix: str = ...,
        concurrency: int = ...,
        ExecutionMaxIdleTime: int = ...,
        privileged: bool = ...,
    ) -> str:
        """Keeps the function for events, commands or messages; returns the registration's id."""

GB = GearsBuilder

class gearsFuture:
    """Returned by a step, it suspends its record until any thread continues it."""

    def __init__(self) -> None: ...
    def continueRun(self, record: Any) -> None:
        """`record` is what the step gives for the record that waits."""
    def continueFailed(self, message: Any) -> None:
        """The step fails with this text."""
    def __await__(self) -> Generator[Any, None, Any]: ...

class _GearsSession:
    """The function that runs now, for threads of its own."""

def execute(*command: Argument) -> Any:
    """One Redis command; strings come back as str. Raises redis.ResponseError."""

def atomic() -> AbstractContextManager[None]:
    """`with atomic():` no other client's command comes between those of the block, for at most a second."""

def hashtag() -> str:
    """A tag whose slot this shard owns, for keys that are to stay here."""

def log(message: object, level: Literal["debug", "verbose", "notice", "warning"] = "notice") -> None:
    """A line in the Redis log."""

def configGet(name: str) -> int | str | None:
    """A setting of functions, or an argument of the module."""

def gearsConfigGet(name: str, default: Any = None) -> Any:
    """The same, with what to give where there is none."""

def override_reply(value: Any) -> None:
    """Makes `value` the reply of the command this function runs for."""

def flat_error(message: object) -> NoReturn:
    """Ends the function with this text as the error, without where it came from."""

def flatError(message: object) -> NoReturn:
    """The same as flat_error."""

def get_command() -> list[str | bytes]:
    """The command this function runs for, name first; empty outside one."""

def call_next(*arguments: Argument) -> Any:
    """In a function that hooks a command: the next hook of it, or the command itself, with these arguments."""

def registerTE(seconds: float, callback: Callable[[], Any], key: str | None = None) -> None:
    """Runs `callback` every so many seconds, until `key` is deleted."""

def runCoroutine(
    coroutine: Coroutine[Any, Any, Any], f: Callable[[Any, Any], Any] | None = None, delay: float = 0
) -> None:
    """Starts a coroutine in the loop after `delay` seconds; then f(result, error)."""

def shardReaderCallback() -> Iterator[str]:
    """Gives the id of this shard, as ShardsIDReader does: a reader for PythonReader."""

def createFuture() -> Future[Any]:
    """A future that a coroutine awaits and any thread sets."""

def setFutureResults(future: Future[Any], result: Any) -> None:
    """Ends the wait for a future of createFuture."""

def setFutureException(future: Future[Any], error: BaseException | str) -> None:
    """The same with an error."""

def isAsyncAllow() -> bool:
    """False in a trigger inside a transaction or a script, which wait for it."""

def isInAtomicBlock() -> bool:
    """Whether Redis serves this function alone now."""

def getGearsSession() -> _GearsSession | None:
    """The function that runs now, to hand to a thread of its own."""

def setGearsSession(run: _GearsSession | None) -> None:
    """In that thread: what is called from now on acts for that function."""

def gearsCtx(session: _GearsSession | _Reader | None = None, *arguments: Any) -> Any:
    """The same for a block: `with gearsCtx(session):`. Of a reader's name it is the builder, as GB."""

runtime: Runtime
"""What shardqa's own functions use: commands in one tick, watches, models, peers."""

__all__ = [
    "GB",
    "GearsBuilder",
    "atomic",
    "call_next",
    "configGet",
    "createFuture",
    "execute",
    "flatError",
    "flat_error",
    "gearsConfigGet",
    "gearsCtx",
    "gearsFuture",
    "getGearsSession",
    "get_command",
    "hashtag",
    "isAsyncAllow",
    "isInAtomicBlock",
    "log",
    "override_reply",
    "registerTE",
    "runCoroutine",
    "runtime",
    "setFutureException",
    "setFutureResults",
    "setGearsSession",
    "shardReaderCallback",
]
