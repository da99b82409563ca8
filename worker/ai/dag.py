"""DAG: a graph of operations over a scope of its own, from its frame to its answer. Nothing here waits.

An operation starts once those that make its inputs are done, so what depends on nothing unfinished runs side by side,
each model in its own thread. A name may be set again: every operation takes the value that the last one before it set.
After a failure nothing new starts; operations without a result then say NA.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardqa import tensors
from shardqa.tensors import Array, BadTensor
from shardqa.worker import frames, resp
from shardqa.worker.ai import messages
from shardqa.worker.ai.batching import Expired, LoadedModel, Request, Result
from shardqa.worker.ai.messages import ModelError
from shardqa.worker.ai.scripts import ScriptCall
from shardqa.worker.frames import MalformedFrame

META, BLOB, VALUES = 1, 2, 4  # what a TENSORGET wants
NOT_RUN = b"+NA\r\n"
LOADED = -1  # stands for the operation that made a loaded tensor


@dataclass(frozen=True, slots=True)
class Get:
    name: str
    fields: int


@dataclass(frozen=True, slots=True)
class ModelRun:
    model: bytes  # the module's id
    call: ScriptCall | None  # of a script
    inputs: Sequence[str]
    outputs: Sequence[str]


@dataclass(slots=True)
class Dag:
    timeout: int  # milliseconds; 0: none
    values: dict[tuple[int, str], Array] = field(default_factory=dict)  # (operation that made it, name)
    operations: list[Get | ModelRun | None] = field(default_factory=list)  # None: a TENSORSET, whose value is there
    sources: list[dict[str, int]] = field(default_factory=list)  # per operation: the ones that make its inputs
    persist: list[tuple[int, str]] = field(default_factory=list)


class _Items:
    def __init__(self, payload: bytes) -> None:
        self._items: Iterator[bytes] = iter(frames.unpack(payload))

    def item(self) -> bytes:
        try:
            return next(self._items)
        except StopIteration:
            raise MalformedFrame("the list of a DAG or script ends early") from None

    def text(self) -> str:
        return self.item().decode("utf-8", "surrogateescape")

    def number(self) -> int:
        return int(self.item())

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.number())]

    def array(self, layout: bytes) -> Array:
        name, _, shape = layout.partition(b" ")
        return tensors.decode(name.decode(), tensors.parse_shape(shape), self.item())

    def call(self, context: str) -> ScriptCall:
        function, variadic, has_count = self.text(), self.number(), self.number()
        return ScriptCall(context, function, variadic, has_count == 1, self.texts(), self.texts())


@dataclass(frozen=True, slots=True)
class ScriptOrder:
    model: bytes
    timeout: int  # milliseconds; 0: none
    outputs: int
    call: ScriptCall
    arrays: list[Array]


def script_order(payload: bytes, context: str) -> ScriptOrder:
    """Parses a SCRIPT payload; `context` names the request whose rights the script has.

    Raises BadTensor, MalformedFrame.
    """
    items = _Items(payload)
    model, timeout, outputs, layout = items.item().split(b" ", 3)
    call = items.call(context)
    arrays = [items.array(tensor) for tensor in layout.split(b";") if tensor]
    return ScriptOrder(model, int(timeout), int(outputs), call, arrays)


def read(payload: bytes, context: str) -> Dag:
    """Parses a DAG payload; `context` is that of script_order. Raises BadTensor, MalformedFrame."""
    items = _Items(payload)
    dag, last = Dag(items.number()), dict[str, int]()
    for _ in range(items.number()):
        name, layout = items.text(), items.item()
        dag.values[LOADED, name] = items.array(layout)
        last[name] = LOADED
    for index in range(items.number()):
        operation, names = _operation(items, context, dag, index)
        fields = [operation.name] if isinstance(operation, Get) else operation.inputs if operation else ()
        dag.sources.append({name: last[name] for name in fields})
        dag.operations.append(operation)
        last |= dict.fromkeys(names, index)
    dag.persist = [(last[name], name) for name in items.texts()]
    return dag


def _operation(items: _Items, context: str, dag: Dag, index: int) -> tuple[Get | ModelRun | None, Sequence[str]]:
    """Reads the next operation (None: a tensor is set) and returns it with the names that it sets."""
    kind = items.item()
    if kind == b"set":
        name, layout = items.text(), items.item()
        dag.values[index, name] = items.array(layout)
        return None, [name]
    if kind == b"get":
        return Get(items.text(), items.number()), ()
    if kind not in (b"model", b"script"):
        raise MalformedFrame(f"a DAG has no operation {kind[:20]!r}")
    model = items.item()
    call = items.call(context) if kind == b"script" else None
    run = ModelRun(model, call, items.texts(), items.texts())
    return run, run.outputs


class DagExecution:
    """A DAG at work. `find` returns the model of an id; `on_end` is called once, in whatever thread ends it."""

    def __init__(
        self, dag: Dag, find: Callable[[bytes], LoadedModel | None], on_end: Callable[[DagExecution], None]
    ) -> None:
        self._dag = dag
        self._find = find
        self._done = on_end
        self._lock = threading.Lock()  # of all below
        self._results: list[bytes | None] = [None if operation else resp.OK for operation in dag.operations]
        self._todo = [index for index, operation in enumerate(dag.operations) if operation]
        self._begun: set[int] = set()  # taken from _todo, without a result: the DAG does not end before they have one
        self._flying: dict[int, tuple[LoadedModel, Request]] = {}
        self.runs: list[tuple[bytes, Result | Exception]] = []
        self._ended = False
        self.failed = False
        self._deadline = time.monotonic() + dag.timeout / 1000 if dag.timeout else None

    def start(self) -> None:
        self._advance()

    def cancel(self) -> None:
        with self._lock:
            self.failed = True
            flying = list(self._flying.values())
        for model, request in flying:
            model.cancel(request)

    def reply(self) -> bytes:
        results = [NOT_RUN if result is None else result for result in self._results]
        return b"*%d\r\n" % len(results) + b"".join(results)

    def persisted(self) -> list[Array]:
        return [] if self.failed else [self._dag.values[key] for key in self._dag.persist]

    def got(self) -> list[Array]:
        """Returns the tensors of the DAG's gets; only where it has ended without a failure."""
        pairs = zip(self._dag.operations, self._dag.sources, strict=True)
        return [self._dag.values[sources[one.name], one.name] for one, sources in pairs if isinstance(one, Get)]

    def _advance(self) -> None:
        """Starts all operations that can start; ends the DAG where none is left."""
        while True:
            with self._lock:
                ready = [] if self.failed else [index for index in self._todo if self._is_ready(index)]
                self._todo = [index for index in self._todo if index not in ready]
                self._begun.update(ready)
            if not ready:
                break
            for index in ready:
                self._begin(index)
        with self._lock:
            is_end = not self._begun and (self.failed or not self._todo) and not self._ended
            self._ended = self._ended or is_end
        if is_end:
            self._done(self)

    def _is_ready(self, index: int) -> bool:
        return all((source, name) in self._dag.values for name, source in self._dag.sources[index].items())

    def _begin(self, index: int) -> None:
        operation, sources = self._dag.operations[index], self._dag.sources[index]
        if isinstance(operation, Get):
            array = self._dag.values[sources[operation.name], operation.name]
            self._results[index] = tensor_reply(array, operation.fields)
            with self._lock:
                self._begun.remove(index)
            return
        assert operation is not None
        model = self._find(operation.model)
        if model is None:
            self._finish(index, operation, ModelError("ERR model key is empty"))
            return
        arrays = [self._dag.values[sources[name], name] for name in operation.inputs]

        def done(result: Result | Exception) -> None:
            self._finish(index, operation, result)
            self._advance()

        request = Request(arrays, done, self._deadline, operation.call)
        with self._lock:
            self._flying[index] = (model, request)
        model.put(request)

    def _finish(self, index: int, run: ModelRun, result: Result | Exception) -> None:
        if isinstance(result, Result) and len(result.outputs) != len(run.outputs):
            result = ModelError("ERR Number of keys given as OUTPUTS here does not match model definition")
        with self._lock:
            self._begun.remove(index)
            self._flying.pop(index, None)
            self.runs.append((run.model, result))
            if isinstance(result, Result):
                self._results[index] = resp.OK
                self._dag.values |= {(index, name): o for name, o in zip(run.outputs, result.outputs, strict=True)}
                return
            self.failed = True
            text = "TIMEOUT the run's time was over" if isinstance(result, Expired) else str(result)
            self._results[index] = resp.error(text)


def tensor_reply(array: Array, fields: int) -> bytes:
    """Returns AI.TENSORGET's reply as RESP; for a type that Redis has not, an error reply."""
    if array.dtype == tensors.NOTHING:
        return resp.error("ERR the model gives a map or a sequence here, which is no tensor")
    try:
        dtype, _, data = tensors.encode(array)
    except BadTensor as error:
        return resp.error(f"ERR {error}")
    value = resp.encode(_values(array)) if fields & VALUES else resp.bulk(data)
    if not fields & META:
        return value
    meta = resp.bulk(b"dtype") + resp.bulk(dtype.encode()) + resp.bulk(b"shape") + resp.encode(list(array.shape))
    if not fields & (BLOB | VALUES):
        return b"*4\r\n" + meta
    return b"*6\r\n" + meta + resp.bulk(b"values" if fields & VALUES else b"blob") + value


def _values(array: Array) -> list[Any]:
    if array.dtype == tensors.BFLOAT16:
        array = (array.view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif array.dtype == bool:
        array = array.astype(np.uint8)
    flat: list[Any] = array.ravel().tolist()
    return flat


def answer(execution: DagExecution) -> list[bytes]:
    """Returns the items of DAG_DONE. Raises BadTensor, PayloadTooLarge."""
    results = execution.persisted()
    layout = messages.form_of(results, None).layout if results else b""
    items = [execution.reply(), b"%d" % len(results), layout, *(tensors.encode(array)[2] for array in results)]
    for model, result in execution.runs:
        numbers = (1, result.microseconds, result.request.rows, 0) if isinstance(result, Result) else (1, 0, 0, 1)
        items += [model, *(b"%d" % number for number in numbers)]
    return items
