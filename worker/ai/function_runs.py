"""Runs of models, scripts and graphs for functions, and of models for scripts. Loop's, pool's and models' threads."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from redis import ResponseError

from shardqa.tensors import Array
from shardqa.worker.ai import dag
from shardqa.worker.ai.batching import LoadedModel, Request, Result
from shardqa.worker.ai.scripts import Reach, ScriptCall
from shardqa.worker.ai.stored_models import StoredModels
from shardqa.worker.calls import Calls, Rights, first
from shardqa.worker.frames import Type
from shardqa.worker.link import Link
from shardqa.worker.statistics import WorkerStatistics


class UntoldRuns:
    """Sums of runs that no EXECUTE asked for, by model id, until AI.INFO learns of them by a RAN frame. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[bytes, Sequence[int]] = {}  # runs, microseconds, samples, errors

    def add(self, id: bytes, result: Result | Exception) -> None:
        run = (1, result.microseconds, result.request.rows, 0) if isinstance(result, Result) else (1, 0, 0, 1)
        with self._lock:
            self._sums[id] = [before + one for before, one in zip(self._sums.get(id, [0] * 4), run, strict=True)]

    def take(self) -> list[str | bytes]:
        """Returns the items of a RAN frame, and begins anew."""
        with self._lock:
            sums, self._sums = self._sums, {}
        return list(chain.from_iterable((id, *map(str, numbers)) for id, numbers in sums.items()))


class FunctionRuns:
    """Runs that no EXECUTE asked for; AI.INFO learns of them by RAN frames."""

    def __init__(self, link: Link, statistics: WorkerStatistics, calls: Calls) -> None:
        self._link = link
        self._statistics = statistics
        self._calls = calls
        self.stored = StoredModels()
        self._untold = UntoldRuns()
        self.reach = Reach(self._call_redis, self._run_for_script)

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
            self._note(model.id, result)

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
            for id, result in execution.runs:
                self._note(id, result)

        execution = dag.DagExecution(graph, self.stored.by_id, done)
        execution.start()
        try:
            await end.wait()
        except asyncio.CancelledError:
            execution.cancel()
            raise
        return execution

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
        self._note(model.id, result)
        if isinstance(result, Result):
            return result.outputs
        raise result

    def _note(self, id: bytes, result: Result | Exception) -> None:
        note(self._statistics, result)
        self._untold.add(id, result)

    def send(self) -> None:
        """Sends a RAN frame of the runs by functions and scripts that AI.INFO does not know yet."""
        if items := self._untold.take():
            self._link.send_list(Type.RAN, 0, items)


def note(statistics: WorkerStatistics, result: Result | Exception) -> None:
    """Counts a run for INFO."""
    if isinstance(result, Result):
        statistics.time("model_run", result.microseconds)
        statistics.time("model_queue", result.queued)
        statistics.add("model_requests")
        statistics.add("model_rows", result.request.rows)
    else:
        statistics.add("model_errors")


def _by_name(model: LoadedModel, inputs: Mapping[str, Array]) -> list[Array]:
    if set(inputs) != set(model.inputs):
        raise ResponseError(f"ERR the model has the inputs {', '.join(model.inputs)}, not {', '.join(inputs)}")
    return [inputs[name] for name in model.inputs]
