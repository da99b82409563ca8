"""The module's frames about models: MODELLOAD, MODELDROP, EXECUTE, SCRIPT, DAG and CANCEL.

Frames are handled in the thread that leads (socket_threads.py), which decodes and queues; answers leave from the
model's own thread, or from the reading thread that runs an idle model itself.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from shardqa.tensors import Array, BadTensor
from shardqa.worker import resp
from shardqa.worker.activity import Activity
from shardqa.worker.ai import backend, dag, messages
from shardqa.worker.ai.backend import File, ModelError
from shardqa.worker.ai.batching import Expired, LoadedModel, ModelActivity, Request, Result, batching_of
from shardqa.worker.ai.function_runs import FunctionRuns, note
from shardqa.worker.ai.scripts import ScriptCall
from shardqa.worker.ai.stored_models import number
from shardqa.worker.frames import Frame, PayloadTooLarge, Type, unpack
from shardqa.worker.link import Link
from shardqa.worker.socket_threads import Work
from shardqa.worker.statistics import WorkerStatistics

TIMED_OUT = b"+TIMEDOUT\r\n"
LOOK = 0.1  # seconds between two looks for runs that take too long


class Models:
    def __init__(
        self,
        link: Link,
        statistics: WorkerStatistics,
        activity: Activity,
        functions: FunctionRuns,
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
        self._limit = limit  # seconds a run may take; 0: no limit
        self._runs = runs  # of one model at once
        self._stored, self._reach = functions.stored, functions.reach
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
            self._stored.settle(id, model, error is None)
            reply = resp.encode([list(model.inputs), list(model.outputs)]) if error is None else resp.error(str(error))
            self._link.send(Type.REPLY, request, reply)

        load = partial(backend.load, file, self._threads, self._reach)
        activity = ModelActivity(self._activity, b"model " + key, number(id))
        start = partial(LoadedModel, load, batching, loaded, activity, id, self._runs, _names(padding))
        self._stored.begin(id, key, tag.decode("utf-8", "replace"), lies_in, start)

    def drop(self, frame: Frame) -> None:
        """Drops the model of a MODELDROP."""
        (id,) = frame.items()
        if (model := self._stored.drop(id)) is not None:
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
        model = self._stored.by_id(order.model)
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
        execution = dag.DagExecution(graph, self._stored.by_id, partial(self._end_graph, frame.id))
        self._graphs[frame.id] = execution
        execution.start()

    def _end_graph(self, id: int, execution: dag.DagExecution) -> None:
        try:
            self._link.send_list(Type.DAG_DONE, id, dag.answer(execution))
        except (BadTensor, PayloadTooLarge) as error:
            self._refuse(id, error)
        self._graphs.pop(id, None)
        for _, result in execution.runs:
            note(self._statistics, result)

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

    def tell(self) -> None:
        """Sends the fields of INFO for each model that has run, and takes back those of models that are gone."""
        for key in self._stored.take_dropped():
            self._statistics.set(_field(key), "")
        for model in self._stored.every():
            if text := model.loaded.counts.text():
                self._statistics.set(_field(model.key), text)

    def _watch(self) -> None:
        while True:
            time.sleep(min(self._limit / 10, LOOK))
            for model in self._stored.every():
                model.loaded.end_after(self._limit)

    def queued(self) -> int:
        return sum(model.loaded.queued() for model in self._stored.every())

    def _answer(self, id: int, outputs: int) -> Callable[[Result | Exception], None]:
        def done(result: Result | Exception) -> None:
            if isinstance(result, Result):
                self._send_tensors(id, outputs, result)
            elif isinstance(result, Expired):
                self._link.send(Type.REPLY, id, TIMED_OUT)
            else:
                self._link.send(Type.REPLY, id, resp.error(str(result)))
            del self._executing[id]  # afterwards, as the statistics: somebody waits for the answer
            note(self._statistics, result)

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


def _field(key: bytes) -> str:
    """Returns `model_` and the key as far as INFO can show it: its names have at most 64 bytes and no colon."""
    return "model_" + "".join(c if c.isalnum() or c in "-_.{}" else "_" for c in key.decode("ascii", "replace"))[:58]


def _names(words: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in unpack(words)]
