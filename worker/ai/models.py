"""The models of this shard: MODELLOAD, MODELDROP, EXECUTE and CANCEL frames, and `run_model` of functions.

Frames are handled in the thread that leads (socket_threads.py), which decodes and queues; answers leave from the
model's own thread, or from the reading thread that runs an idle model itself.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from redis import ResponseError

from shardqa.tensors import Array, BadTensor
from shardqa.worker import resp
from shardqa.worker.activity import Activity
from shardqa.worker.ai import dag, messages
from shardqa.worker.ai.backend import File, ModelError
from shardqa.worker.ai.batching import Expired, LoadedModel, ModelActivity, Request, Result, batching_of, loader
from shardqa.worker.ai.scripts import Reach, ScriptCall
from shardqa.worker.ai.stored_models import StoredModels, number
from shardqa.worker.calls import Calls, Rights, first
from shardqa.worker.frames import Frame, PayloadTooLarge, Type, unpack
from shardqa.worker.link import Link
from shardqa.worker.socket_threads import Work
from shardqa.worker.statistics import WorkerStatistics

TIMED_OUT = b"+TIMEDOUT\r\n"
LOOK = 0.1  # seconds between two looks for runs that take too long


@dataclass(slots=True)
class RunStatistics:
    calls: int = 0
    microseconds: int = 0
    samples: int = 0
    errors: int = 0


class UntoldRuns:
    """Sums of runs that no EXECUTE asked for, by model id, until AI.INFO learns of them by a RAN frame. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ran: dict[bytes, RunStatistics] = {}

    def add(self, id: bytes, result: Result | Exception) -> None:
        with self._lock:
            runs = self._ran.setdefault(id, RunStatistics())
            runs.calls += 1
            if isinstance(result, Result):
                runs.microseconds += result.microseconds
                runs.samples += result.request.rows
            else:
                runs.errors += 1

    def take(self) -> list[str | bytes]:
        """Returns the items of a RAN frame, and begins anew."""
        with self._lock:
            ran, self._ran = self._ran, {}
        return [
            item
            for id, runs in ran.items()
            for item in (id, str(runs.calls), str(runs.microseconds), str(runs.samples), str(runs.errors))
        ]


class Models:
    def __init__(
        self,
        link: Link,
        statistics: WorkerStatistics,
        activity: Activity,
        calls: Calls,
        *,
        threads: int,
        limit: float = 0,
        runs: int = 1,
        computing: "threading.Lock | None" = None,
    ) -> None:
        self._link = link
        self._statistics = statistics
        self._activity = activity
        self._threads = threads  # of one run (intra-op)
        self._calls = calls
        self._limit = limit  # seconds a run may take; 0: no limit
        self._runs = runs  # of one model at once
        self.stored = StoredModels()
        self._untold = UntoldRuns()
        self._computing = computing or threading.Lock()  # held by the reading thread that computes: the other one reads
        self._form: messages.OutputForm | None = None  # of the last answer, from any thread: the next is mostly like it
        self._executing: dict[int, tuple[LoadedModel, Request]] = {}  # by frame id, as the next
        self._graphs: dict[int, dag.DagExecution] = {}
        if limit:
            threading.Thread(target=self._watch, name="runs", daemon=True).start()

    def load(self, frame: Frame) -> None:
        """Begins to load the model of a MODELLOAD; a REPLY says how that ended."""
        id, kind, device, tag, size, minimum, patience, key, inputs, outputs, padding, path, blob = frame.items()
        names = (_names(padding), _names(inputs), _names(outputs))
        lies_in = Path(os.fsdecode(path)) if path else None
        file = File(kind.decode(), device.decode(), blob, lies_in, *names)
        del blob  # the loader alone holds it, until it has loaded
        request = frame.id  # not the frame itself, which would hold the file for as long as the model lives
        batching = batching_of(int(size), int(minimum), int(patience))

        def loaded(model: LoadedModel, error: ModelError | None) -> None:
            self.stored.settle(id, model, error is None)
            reply = resp.encode([list(model.inputs), list(model.outputs)]) if error is None else resp.error(str(error))
            self._link.send(Type.REPLY, request, reply)

        load = loader(file, self._threads, Reach(self._call_redis, self._run_for_script))
        activity = ModelActivity(self._activity, b"model " + key, number(id))
        start = partial(LoadedModel, load, batching, loaded, activity, id, self._runs, _names(padding))
        self.stored.begin(id, key, tag.decode("utf-8", "replace"), lies_in, start)

    def drop(self, frame: Frame) -> None:
        """Drops the model of a MODELDROP."""
        (id,) = frame.items()
        if (model := self.stored.drop(id)) is not None:
            model.drop()

    def execute(self, frame: Frame) -> Work | None:
        """Begins the run of an EXECUTE, which TENSORS or a REPLY answers; returns it where the caller is to do it."""
        try:
            order, arrays = messages.order(frame.payload)
        except BadTensor as error:
            self._refuse(frame.id, error)
            return None
        if (start := self._begin(frame.id, "model", order, arrays)) is None:
            return None
        model, request = start
        if self._computing.acquire(blocking=False):
            if model.claim():
                return partial(self._run_here, model, request)
            self._computing.release()
        model.put(request)
        return None

    def script(self, frame: Frame) -> None:
        """Begins the run of a SCRIPT, which is answered as an EXECUTE.

        The model's own thread runs it: a script may wait for Redis, which this thread reads.
        """
        try:
            order = dag.script_order(frame.payload, f"r{frame.id}")
        except BadTensor as error:
            self._refuse(frame.id, error)
            return
        if (start := self._begin(frame.id, "script", order, order.arrays, order.call)) is not None:
            model, request = start
            model.put(request)

    def _begin(
        self,
        id: int,
        what: str,
        order: messages.Order | dag.ScriptOrder,
        arrays: Sequence[Array],
        call: ScriptCall | None = None,
    ) -> tuple[LoadedModel, Request] | None:
        """Returns the run that a frame asks for; None where its model is gone, which is answered."""
        model = self.stored.by_id(order.model)
        if model is None:
            self._refuse(id, f"{what} key is empty")
            return None
        deadline = time.monotonic() + order.timeout / 1000 if order.timeout else None
        request = Request(arrays, self._answer(id, order.outputs), deadline, call)
        self._executing[id] = (model, request)
        return model, request

    def _refuse(self, id: int, reason: object) -> None:
        self._link.send(Type.REPLY, id, resp.error(f"ERR {reason}"))

    def graph(self, frame: Frame) -> None:
        """Begins a DAG, which DAG_DONE answers, or a REPLY with an error."""
        try:
            graph = dag.read(frame.payload, f"r{frame.id}")
        except BadTensor as error:
            self._refuse(frame.id, error)
            return
        execution = dag.DagExecution(graph, self.stored.by_id, partial(self._end_graph, frame.id))
        self._graphs[frame.id] = execution
        execution.start()

    def _end_graph(self, id: int, execution: dag.DagExecution) -> None:
        try:
            self._link.send_list(Type.DAG_DONE, id, dag.answer(execution))
        except (BadTensor, PayloadTooLarge) as error:
            self._refuse(id, error)
        self._graphs.pop(id, None)
        for _, result in execution.runs():
            self._note(result)

    def _call_redis(self, context: str, words: Sequence[str]) -> Any:
        return first(self._calls.run(Rights(context, ""), [words]))

    def _run_for_script(self, context: str, key: str, arrays: Sequence[Array]) -> list[Array]:
        """Runs a model and waits for it in a script's thread. Raises redis.ResponseError, ModelError."""
        self._call_redis(context, ["AI.MODELGET", key, "META"])  # may the caller read that key?
        model, end = self.stored.at(key), threading.Event()
        results: list[Result | Exception] = []

        def settle(result: Result | Exception) -> None:
            results.append(result)
            end.set()

        model.put(Request(arrays, settle))
        end.wait()
        (result,) = results
        self._note(result)
        self._untold.add(model.id, result)
        if isinstance(result, Result):
            return result.outputs
        raise result

    def _run_here(self, model: LoadedModel, request: Request) -> None:
        try:
            model.run_claimed(request)
        finally:
            self._computing.release()

    def cancel(self, id: int) -> None:
        executing = self._executing.get(id)
        if executing is not None:
            executing[0].cancel(executing[1])
        graph = self._graphs.get(id)
        if graph is not None:
            graph.cancel()

    async def run(self, key: str, inputs: Mapping[str, Array], outputs: Sequence[str]) -> dict[str, Array]:
        """Runs a model for a function, with inputs and all its outputs by name; it must have those in `outputs`.

        Raises redis.ResponseError.
        """
        model = self.stored.at(key)
        names = list(model.outputs)
        missing = [name for name in outputs if name not in names]
        if missing:
            raise ResponseError(f"ERR model {key} has no output {missing[0]!r}; it has {', '.join(names)}")
        results = await self.run_ordered(model, _by_name(model, inputs))
        return dict(zip(names, results, strict=True))

    async def run_ordered(
        self, model: LoadedModel, arrays: Sequence[Array], call: ScriptCall | None = None
    ) -> list[Array]:
        """Runs a model, or the `call` of a script; inputs and outputs are in its order. Raises redis.ResponseError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Array]] = loop.create_future()

        def settle(result: Result | Exception) -> None:
            if future.done():  # its waiter was cancelled
                return
            if isinstance(result, Result):
                future.set_result(result.outputs)
            else:
                future.set_exception(ResponseError(str(result) or "TIMEOUT the run was cancelled"))

        def done(result: Result | Exception) -> None:
            loop.call_soon_threadsafe(settle, result)
            self._note(result)
            self._untold.add(model.id, result)

        request = Request(arrays, done, call=call)
        model.put(request)
        try:
            return await future
        except asyncio.CancelledError:
            model.cancel(request)
            raise

    async def run_graph(self, graph: dag.Dag) -> dag.DagExecution:
        """Runs a graph for a function, to its end."""
        loop = asyncio.get_running_loop()
        end = asyncio.Event()

        def done(execution: dag.DagExecution) -> None:
            loop.call_soon_threadsafe(end.set)
            for id, result in execution.runs():
                self._note(result)
                self._untold.add(id, result)

        execution = dag.DagExecution(graph, self.stored.by_id, done)
        execution.start()
        try:
            await end.wait()
        except asyncio.CancelledError:
            execution.cancel()
            raise
        return execution

    def send_runs(self) -> None:
        """Sends a RAN frame of the runs by functions and scripts that AI.INFO does not know yet."""
        if items := self._untold.take():
            self._link.send_list(Type.RAN, 0, items)

    def tell(self) -> None:
        """Sends the fields of INFO for each model that has run, and takes back those of models that are gone."""
        for key in self.stored.take_dropped():
            self._statistics.set(_field(key), "")
        for model in self.stored.every():
            if text := model.loaded.counts.text():
                self._statistics.set(_field(model.key), text)

    def _watch(self) -> None:
        while True:
            time.sleep(min(self._limit / 10, LOOK))
            for model in self.stored.every():
                model.loaded.end_after(self._limit)

    def queued(self) -> int:
        return sum(model.loaded.queued() for model in self.stored.every())

    def _answer(self, id: int, outputs: int) -> Callable[[Result | Exception], None]:
        def done(result: Result | Exception) -> None:
            if isinstance(result, Result):
                self._send_tensors(id, outputs, result)
            elif isinstance(result, Expired):
                self._link.send(Type.REPLY, id, TIMED_OUT)
            else:
                self._link.send(Type.REPLY, id, resp.error(str(result)))
            del self._executing[id]  # afterwards, as the statistics: somebody waits for the answer
            self._note(result)

        return done

    def _send_tensors(self, id: int, outputs: int, result: Result) -> None:
        if outputs != len(result.outputs):
            self._refuse(id, "Number of keys given as OUTPUTS here does not match model definition")
            return
        try:
            form = self._form = messages.form_of(result.outputs, self._form)
            frame = messages.answer(id, form, result.outputs, result.microseconds)
        except (BadTensor, PayloadTooLarge) as error:
            self._refuse(id, error)
            return
        self._link.send_frame(frame)

    def _note(self, result: Result | Exception) -> None:
        if isinstance(result, Result):
            self._statistics.time("model_run", result.microseconds)
            self._statistics.time("model_queue", result.queued)
            self._statistics.add("model_requests")
            self._statistics.add("model_rows", result.request.rows)
        else:
            self._statistics.add("model_errors")


def _field(key: bytes) -> str:
    """Returns `model_` and the key as far as INFO can show it: its names have at most 64 bytes and no colon."""
    return "model_" + "".join(c if c.isalnum() or c in "-_.{}" else "_" for c in key.decode("ascii", "replace"))[:58]


def _names(words: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in unpack(words)]


def _by_name(model: LoadedModel, inputs: Mapping[str, Array]) -> list[Array]:
    if set(inputs) != set(model.inputs):
        raise ResponseError(f"ERR the model has the inputs {', '.join(model.inputs)}, not {', '.join(inputs)}")
    return [inputs[name] for name in model.inputs]
