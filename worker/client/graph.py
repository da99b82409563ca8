"""A graph of operations that one AI.DAGEXECUTE runs, written one after the other."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar, Unpack

from shardqa.tensors import Array
from shardqa.worker.client import calls
from shardqa.worker.client.calls import AiCall, Key, ScriptArguments, Word
from shardqa.worker.client.faults import RunFailed

R = TypeVar("R")  # list[…] of a client that blocks, an awaitable of it of the other
Results = list[Array | None]


class OperationGraph(Generic[R]):
    """A graph of operations, built by `Client.graph`; `run` gives an array for each `tensor_get`, else None."""

    def __init__(
        self,
        submit: Callable[[AiCall[Results]], R],
        load: Sequence[Key],
        persist: Sequence[Key],
        routing: Key | None,
        timeout_ms: int | None,
        read_only: bool,
    ) -> None:
        self._submit = submit
        self._head: list[Word] = ["AI.DAGEXECUTE_RO" if read_only else "AI.DAGEXECUTE"]
        for name, keys in (("LOAD", load), ("PERSIST", persist)):
            self._head += [name, len(keys), *keys] if keys else []
        self._head += [] if routing is None else ["ROUTING", routing]
        self._head += [] if timeout_ms is None else ["TIMEOUT", timeout_ms]
        self._key = next(iter((*load, *persist, *([] if routing is None else [routing]))), None)
        self._operations: list[list[Word]] = []
        self._gets: list[bool] = []
        self._again = True

    def tensor_set(self, name: Key, array: Array) -> Self:
        """Raises BadTensor."""
        return self._add(calls.tensor_words(name, array))

    def tensor_get(self, name: Key) -> Self:
        return self._add(calls.tensor_get(name).words, get=True)

    def model_execute(self, key: Key, inputs: Sequence[Key], outputs: Sequence[Key]) -> Self:
        self._key = key if self._key is None else self._key
        return self._add(calls.model_execute(key, inputs, outputs).words)

    def script_execute(self, key: Key, function: str, **arguments: Unpack[ScriptArguments]) -> Self:
        self._key = key if self._key is None else self._key
        self._again = False
        return self._add(calls.script_execute(key, function, **arguments).words)

    def run(self) -> R:
        """Raises RunFailed with what each operation gave in `results`, RunTimedOut, and whatever a client raises."""
        words = list(self._head)
        if len(words) == 1 and self._key is not None:
            words += ["ROUTING", self._key]  # one of LOAD, PERSIST and ROUTING must be there
        for operation in self._operations:
            words += ["|>", *operation]
        return self._submit(AiCall(words, self._key, self._results, RunFailed, self._again))

    def _add(self, words: Sequence[Word], *, get: bool = False) -> Self:
        self._operations.append(list(words))
        self._gets.append(get)
        return self

    def _results(self, reply: Any) -> Results:
        results = calls.graph_results(reply)
        return [calls.array_of(result) if get else None for result, get in zip(results, self._gets, strict=True)]
