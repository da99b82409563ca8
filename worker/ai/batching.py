"""One loaded model: a thread of its own that owns the queue, batches what waits, runs, and answers. With more than one
run at a time (THREADS_PER_QUEUE) it hands batches to further threads, which run and answer.

Requests are put by any thread and owned by the model's thread from then on. Those with equal types and equal
dimensions 1..n run together, stacked on dimension 0, up to `size` rows; fewer than `minimum` rows wait up to
`patience` seconds for more. A model whose inputs and outputs don't all declare a free first dimension runs each request
alone: nobody could say whose rows are whose. Inputs named PADDED may differ in their length (padding.py). A thread with
a request for an idle model may claim the model and run the request itself; the model's own thread waits meanwhile. An
answer goes out straight from the thread that ran. When a merged run fails, each of its requests runs alone, so one bad
input hurts only its sender.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from redis import ResponseError

from shardqa.machine import release_freed
from shardqa.tensors import Array
from shardqa.worker.activity import Activity, ActivityKind
from shardqa.worker.ai.backend import Model, ModelError, OnnxModel
from shardqa.worker.ai.counts import RunCounts
from shardqa.worker.ai.padding import Padding, of_like_lengths, padding_of
from shardqa.worker.ai.scripts import ScriptCall

BOUND = 1 << 30  # rows, or milliseconds, of a model's batching, as the module bounds it
UNHEEDED = 20.0  # seconds that a run may go on once it was told to end; then the worker's: TorchScript hears nothing


@dataclass(frozen=True, slots=True)
class Batching:
    size: int  # rows of one run; 0: no batching
    minimum: int  # rows worth a run
    patience: float  # seconds a run waits for the minimum; 0 with a minimum: for ever


def batching_of(size: int, minimum: int, milliseconds: int) -> Batching:
    """Returns the batching that a model is stored with. Raises ValueError for what AI.MODELSTORE would refuse."""
    if not all(0 <= number <= BOUND for number in (size, minimum, milliseconds)):
        raise ValueError(f"batching of {size}, at least {minimum}, for {milliseconds} ms: each is from 0 to {BOUND}")
    return Batching(size, minimum, milliseconds / 1000)


@dataclass(slots=True, eq=False)
class Request:
    arrays: Sequence[Array]  # in the order of the model's inputs
    done: Callable[["Result | Exception"], None]  # called once, in the thread that ran
    deadline: float | None = None  # of time.monotonic(); later the request is dropped with Expired
    call: ScriptCall | None = None  # of a script
    cancelled: bool = False  # set by any thread: nobody waits for it any more
    put: float = field(default_factory=time.perf_counter)

    @property
    def rows(self) -> int:
        return self.arrays[0].shape[0] if self.arrays and self.arrays[0].ndim else 1

    def likeness(self) -> tuple[object, ...] | None:
        """Returns a value that is equal for requests which can be stacked; None where this one can't be."""
        rows = self.rows
        if not self.arrays or any(a.ndim == 0 or a.shape[0] != rows for a in self.arrays):
            return None
        return tuple((a.dtype, a.shape[1:]) for a in self.arrays)


@dataclass(slots=True)
class Result:
    request: Request
    outputs: list[Array]
    start: float  # of time.perf_counter(), as `end`: the run
    end: float

    @property
    def microseconds(self) -> int:
        return int((self.end - self.start) * 1e6)

    @property
    def queued(self) -> int:
        """Returns the microseconds from the request's arrival to the run's start."""
        return int((self.start - self.request.put) * 1e6)


class Expired(Exception):
    """The request's time was over before its run began."""


@dataclass(frozen=True, slots=True)
class ModelActivity:
    """A model at work, as the module sees it (activity.py)."""

    activity: Activity
    name: bytes
    model: int  # the module's id

    def begin(self, kind: ActivityKind = ActivityKind.MODEL) -> int:
        return self.activity.begin(kind, self.name, subject=self.model)

    def limit(self, slot: int) -> None:
        self.activity.limit(slot, UNHEEDED, lambda: None)

    def end(self, slot: int) -> None:
        self.activity.end(slot)


@dataclass(frozen=True, slots=True)
class Running:
    batch: list[Request]
    options: object  # the run's handle
    began: float  # time.monotonic()
    slot: int  # of its activity


class RequestQueue:
    """The requests of a model. Any thread puts them, the model's takes them out, in batches of like ones."""

    def __init__(self, batching: Batching) -> None:
        self._batching = batching
        self._arriving: queue.SimpleQueue[Request | None] = queue.SimpleQueue()  # None: look up, something changed
        self.waiting: list[Request] = []  # model's thread only
        self.is_closed = False
        self._why = ModelError("ERR model key is empty")  # it is closed
        self._is_over = False  # the model's thread takes no more

    def put(self, request: Request | None) -> None:
        self._arriving.put(request)
        if self._is_over:
            self.refuse()

    def close(self, why: ModelError | None = None) -> None:
        self._why = why or self._why
        self.is_closed = True
        self._arriving.put(None)

    def count(self) -> int:
        return self._arriving.qsize() + len(self.waiting)

    def next(self, splits: bool, padding: Padding | None) -> list[Request]:
        """Returns the next requests to run together; empty where none is left."""
        self.arrive(0)
        if not self.waiting or self.is_closed:
            return []
        first = self.waiting[0]
        batch = self._alike(first, padding) if splits else [first]
        if self._batching.minimum and splits:
            until = first.put + self._batching.patience if self._batching.patience else None
            least = self._batching.minimum
            while sum(r.rows for r in batch) < least and not self.is_closed and (left := _left(until)) != 0:
                self.arrive(left)
                if first not in self.waiting:
                    return []
                batch = self._alike(first, padding)
        for request in batch:
            self.waiting.remove(request)
        return batch

    def arrive(self, timeout: float | None) -> None:
        """Takes in new requests and drops those that expired or were cancelled.

        `timeout`: seconds to wait for the first one; None: for ever, 0: not at all.
        """
        with suppress(queue.Empty):
            while True:
                if item := self._arriving.get(timeout != 0, timeout):
                    self.waiting.append(item)
                timeout = 0
        for request in list(self.waiting):
            if request.cancelled or (request.deadline is not None and request.deadline < time.monotonic()):
                self.waiting.remove(request)
                request.done(Expired())

    def refuse(self) -> None:
        """Answers with an error what arrives, now and from now on. Any thread."""
        self._is_over = True
        with suppress(queue.Empty):
            while True:
                if request := self._arriving.get_nowait():
                    request.done(self._why)

    def _alike(self, first: Request, padding: Padding | None) -> list[Request]:
        batch, rows = [first], first.rows
        if not self._batching.size or len(self.waiting) == 1:
            return batch
        if padding is not None and padding.length_of(first.arrays) is not None:
            return self._of_like_lengths(first, padding)
        likeness = first.likeness()
        if likeness is None:
            return batch
        for request in self.waiting:
            if request is first or rows + request.rows > self._batching.size or request.likeness() != likeness:
                continue
            batch.append(request)
            rows += request.rows
        return batch

    def _of_like_lengths(self, first: Request, padding: Padding) -> list[Request]:
        if first.likeness() is None:
            return [first]
        likeness = padding.likeness(first.arrays)
        requests = [first]
        for request in self.waiting:
            if request is not first and request.likeness() is not None and padding.likeness(request.arrays) == likeness:
                requests.append(request)
        sizes = [(request.rows, padding.length_of(request.arrays)) for request in requests]
        return [requests[i] for i in of_like_lengths(sizes, self._batching.size, self._batching.minimum)]


class LoadedModel:
    """A loaded model and its thread, which calls `on_load` with the model, or with why it can't be loaded."""

    def __init__(
        self,
        load: Callable[[], Model],
        batching: Batching,
        on_load: Callable[["LoadedModel", ModelError | None], None],
        activity: ModelActivity,
        id: bytes = b"",
        concurrency: int = 1,
        padding_names: Sequence[str] = (),
    ) -> None:
        self._activity = activity
        self._load: Callable[[], Model] | None = load  # gone once it was called: it holds the model's file
        self._batching = batching
        self._loaded = on_load
        self._requests = RequestQueue(batching)
        self._concurrency = concurrency  # runs at once, where the model can
        self._turns = threading.Semaphore(1)  # one for each; taken by the thread that runs the model
        self._batches: queue.SimpleQueue[list[Request] | None] = queue.SimpleQueue()  # for further threads
        self._runners = 0  # of these
        self._padded = padding_names
        self._padding: Padding | None = None
        self._model: Model | None = None
        self.id = id  # the module's
        self._running: dict[int, Running] = {}  # by thread
        self._ending = threading.Lock()  # a run that is told to end has not yet given its slot back
        self.counts = RunCounts()
        self._options: object | None = None  # the next run's handle, where it is made already
        self._thread = threading.Thread(target=self._live, name="model", daemon=True)
        self._thread.start()

    @property
    def inputs(self) -> Sequence[str]:
        assert self._model is not None
        return self._model.inputs

    @property
    def outputs(self) -> Sequence[str]:
        assert self._model is not None
        return self._model.outputs

    def note(self, name: str) -> str:
        """Returns a note of an ONNX file by its name. Raises redis.ResponseError where there is none."""
        notes = self._model.notes() if isinstance(self._model, OnnxModel) else {}
        if name not in notes:
            raise ResponseError(f"ERR the model's file has no note {name!r}")
        return notes[name]

    def put(self, request: Request) -> None:
        self._requests.put(request)

    def claim(self) -> bool:
        """Takes the model for the caller where it is idle; returns whether. The caller must then call `run_claimed`.

        Any thread.
        """
        if self._batching.minimum or self._requests.count():
            return False
        if not self._turns.acquire(blocking=False):
            return False
        if self._model is not None and not self._requests.is_closed:
            return True
        self._turns.release()
        return False

    def run_claimed(self, request: Request) -> None:
        """Runs one request in the calling thread and gives the model back."""
        try:
            self._run_alone(request)
            self._make_ready()
        finally:
            self._turns.release()

    def cancel(self, request: Request) -> None:
        """Drops a request from the queue; ends its run where no other request waits for that. Any thread."""
        request.cancelled = True
        with self._ending:
            for run in self._running.values():
                if request in run.batch and all(r.cancelled for r in run.batch):
                    self._end(run)
        self._requests.put(None)

    def end_after(self, seconds: float) -> None:
        """Ends each run that has taken longer than so many seconds. Any thread."""
        with self._ending:
            for run in self._running.values():
                if time.monotonic() - run.began > seconds:
                    self._end(run)

    def _end(self, run: Running) -> None:
        if self._model is not None:
            self._model.terminate(run.options)
            self._activity.limit(run.slot)

    def drop(self) -> None:
        """Answers all that waits with an error, and ends the thread: the model is gone."""
        self._requests.close()

    def queued(self) -> int:
        return self._requests.count()

    def _live(self) -> None:
        load, self._load = self._load, None
        assert load is not None
        slot = self._activity.begin(ActivityKind.LOAD)
        try:
            model = load()
            self._padding = padding_of(self._padded, model)
            self._model = model
        except Exception as error:  # noqa: BLE001 - of a backend's own: somebody waits for the answer
            fault = error if isinstance(error, ModelError) else ModelError(f"ERR {error!r}")
            self._requests.close(fault)
            self._loaded(self, fault)
        else:
            self._loaded(self, None)
        finally:
            self._activity.end(slot)
        del load
        release_freed()
        if self._model is not None and self._model.concurrent and self._concurrency > 1:
            self._hire(self._concurrency)
        while not self._requests.is_closed:
            self._requests.arrive(0 if self._requests.waiting else None)
            self._turns.acquire()  # first: what arrives or is cancelled while other threads run the model still counts
            batch = self._requests.next(self._model is not None and self._model.splits, self._padding)
            if batch and self._runners:
                self._batches.put(batch)  # whoever runs it gives the turn back
                continue
            try:
                if batch:
                    self._run(batch)
                    self._make_ready()
            finally:
                self._turns.release()
        for request in self._requests.waiting:
            self._requests.put(request)
        self._requests.refuse()
        for _ in range(self._runners or 1):
            self._batches.put(None)
            self._turns.acquire()
        self._model = None

    def _hire(self, runners: int) -> None:
        for number in range(runners):
            threading.Thread(target=self._run_batches, name=f"model run {number}", daemon=True).start()
        self._runners = runners
        self._turns.release(runners - 1)

    def _run_batches(self) -> None:
        while (batch := self._batches.get()) is not None:
            try:
                self._run(batch)
                self._make_ready()
            finally:
                self._turns.release()

    def _run(self, batch: list[Request]) -> None:
        if len(batch) == 1:
            self._run_alone(batch[0])
            return
        rows = [r.rows for r in batch]
        lengths = [self._padding.length_of(r.arrays) if self._padding else None for r in batch]
        longest = max((length for length in lengths if length is not None), default=0)
        start = time.perf_counter()
        try:
            outputs = self._compute(batch, self._stacked(batch, longest))
        except ModelError:
            outputs = []
        if not outputs or not all(isinstance(o, np.ndarray) and o.shape[:1] == (sum(rows),) for o in outputs):
            for request in batch:  # one of them is bad, or the outputs are not what the model declares
                self._run_alone(request)
            return
        at, end = 0, time.perf_counter()
        self.counts.ran(sum(rows), start, end)
        for request, n, length in zip(batch, rows, lengths, strict=True):
            part = [output[at : at + n] for output in outputs]
            if self._padding is not None and length is not None:
                part = self._padding.cut(part, longest, length)
            result = Result(request, part, start, end)
            self.counts.answered(result)
            request.done(result)
            at += n

    def _stacked(self, batch: Sequence[Request], longest: int) -> list[Array]:
        if self._padding is not None and longest:
            return self._padding.stacked([r.arrays for r in batch], longest)
        return [np.concatenate(arrays) for arrays in zip(*(r.arrays for r in batch), strict=True)]

    def _run_alone(self, request: Request) -> None:
        start = time.perf_counter()
        try:
            outputs = self._compute([request], request.arrays)
        except ModelError as error:
            self.counts.errors += 1
            request.done(error)
        else:
            result = Result(request, outputs, start, time.perf_counter())
            request.done(result)
            self.counts.ran(request.rows, result.start, result.end)
            self.counts.answered(result)

    def _compute(self, batch: list[Request], arrays: Sequence[Array]) -> list[Array]:
        assert self._model is not None
        options, self._options = self._options, None  # a runner that finds it taken makes its own
        options = options or self._model.options()
        slot = self._activity.begin()
        run = Running(batch, options, time.monotonic(), slot)
        try:
            with self._ending:
                self._running[threading.get_ident()] = run
                if all(request.cancelled for request in batch):  # before it ran: who did that found no run to end
                    self._end(run)
            call = batch[0].call
            return self._model.run(arrays, options) if call is None else cast(Any, self._model).call(call, arrays)
        finally:
            with self._ending:
                del self._running[threading.get_ident()]
                self._activity.end(slot)

    def _make_ready(self) -> None:
        """Prepares the next run, once this one is answered."""
        assert self._model is not None
        self._options = self._model.options()


def _left(until: float | None) -> float | None:
    """Seconds to `until` (of time.perf_counter()), not below 0; None: for ever."""
    return None if until is None else max(0.0, until - time.perf_counter())
