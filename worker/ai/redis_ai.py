"""`import redisAI` for functions: tensors, and runs of this shard's models, scripts and graphs, under RedisAI's names
for RedisGears.

Inputs of a model are matched by name when the names are the model's own, else by the order they were added in. Keys
are read and written through Redis as the function's user, so what is set replicates.
"""

import types
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from redis import ResponseError

from shardqa import tensors
from shardqa.tensors import Array
from shardqa.worker.ai.batching import LoadedModel
from shardqa.worker.ai.dag import ModelRun
from shardqa.worker.ai.dag_runner import DagRunner, RunStep, Tensor
from shardqa.worker.ai.function_runs import FunctionRuns
from shardqa.worker.ai.scripts import ScriptCall
from shardqa.worker.calls import Calls, Command, Rights, whole
from shardqa.worker.gears.pipeline.function_threads import current_or_begun_by
from shardqa.worker.gears.pipeline.run import current, enter
from shardqa.worker.threads import Threads

T = TypeVar("T")
OUTSIDE = "redisAI reaches keys only from inside a function that runs, and from threads that one began"
OUTPUTS_DIFFER = "ERR Number of keys given as OUTPUTS here does not match model definition"


@dataclass(slots=True)
class ModelRunner:
    key: str
    inputs: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ScriptRunner:
    key: str
    function: str
    inputs: list[Array] = field(default_factory=list)
    variadic: int = -1  # index of the first input that goes into a list
    outputs: int = 0


def _tensor(dtype: str, dimensions: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    return dtype.upper(), tuple(int(d) for d in dimensions)


def createTensorFromValues(dtype: str, dimensions: Sequence[int], values: Sequence[Any]) -> Tensor:
    """Makes a tensor of this shape from numbers or strings in row order. Raises BadTensor."""
    return Tensor(tensors.from_values(*_tensor(dtype, dimensions), list(values)))


def createTensorFromBlob(dtype: str, dimensions: Sequence[int], blob: bytes | bytearray | memoryview) -> Tensor:
    """Makes a tensor of this shape from its bytes in row order, little endian. Raises BadTensor."""
    return Tensor(tensors.decode(*_tensor(dtype, dimensions), bytes(blob)))


def tensorToFlatList(tensor: Tensor) -> list[Any]:
    flat: list[Any] = tensor.array.ravel().tolist()
    return flat


def tensorGetDataAsBlob(tensor: Tensor) -> bytes:
    return tensors.encode(tensor.array)[2]


def tensorGetDims(tensor: Tensor) -> tuple[int, ...]:
    return tensor.array.shape


def createModelRunner(key: str) -> ModelRunner:
    return ModelRunner(key)


def modelRunnerAddInput(runner: ModelRunner, name: str, tensor: Tensor) -> int:
    runner.inputs[name] = tensor.array
    return 1


def modelRunnerAddOutput(runner: ModelRunner, name: str) -> int:
    runner.outputs.append(name)
    return 1


def createScriptRunner(key: str, function: str) -> ScriptRunner:
    return ScriptRunner(key, function)


def scriptRunnerAddInput(runner: ScriptRunner, tensor: Tensor | str, name: Tensor | str | None = None) -> int:
    """Adds the next input, which has no name in a script: one is taken before the tensor, behind it, or not at all."""
    value = name if isinstance(name, Tensor) else tensor
    if not isinstance(value, Tensor):
        raise TypeError(f"scriptRunnerAddInput wants a tensor, not {type(value).__name__}")
    runner.inputs.append(value.array)
    return 1


def scriptRunnerAddInputList(runner: ScriptRunner, tensors: Sequence[Tensor]) -> int:
    if runner.variadic >= 0:
        raise ValueError("a script takes one list of tensors, at its end")
    runner.variadic = len(runner.inputs)
    runner.inputs += [tensor.array for tensor in tensors]
    return 1


def scriptRunnerAddOutput(runner: ScriptRunner, name: str | None = None) -> int:
    runner.outputs += 1
    return 1


class Keyspace:
    """The functions that reach Redis or a model of one shard."""

    def __init__(self, calls: Calls, threads: Threads, models: FunctionRuns) -> None:
        self._calls = calls
        self._threads = threads
        self._models = models

    def setTensorInKey(self, key: str, tensor: Tensor) -> None:
        self.msetTensorsInKeyspace({key: tensor})

    def msetTensorsInKeyspace(self, named: dict[str, Tensor]) -> None:
        self._run([("AI.TENSORSET", key, *self._arguments(tensor)) for key, tensor in named.items()])

    def getTensorFromKey(self, key: str) -> Tensor:
        return self.mgetTensorsFromKeyspace([key])[0]

    def mgetTensorsFromKeyspace(self, keys: Sequence[str]) -> list[Tensor]:
        replies = self._run([("AI.TENSORGET", key, "META", "BLOB") for key in keys])
        return [Tensor(_from_reply(reply)) for reply in replies]

    async def modelRunnerRunAsync(self, runner: ModelRunner) -> list[Tensor]:
        await self._allowed([_read_model(runner.key)])
        model = self._models.stored.at(runner.key)
        if runner.outputs and len(runner.outputs) != len(model.outputs):
            raise ResponseError(OUTPUTS_DIFFER)
        names = list(model.inputs)
        has_names = set(names) == set(runner.inputs)
        arrays = [runner.inputs[name] for name in names] if has_names else list(runner.inputs.values())
        return [Tensor(array) for array in await self._models.run_ordered(model, arrays)]

    def modelRunnerRun(self, runner: ModelRunner) -> list[Tensor]:
        """Runs a model for a synchronous function; an async one awaits modelRunnerRunAsync."""
        return self._waited(self.modelRunnerRunAsync(runner))

    async def scriptRunnerRunAsync(self, runner: ScriptRunner) -> list[Tensor]:
        rights = await self._allowed([_run_script(runner.key, runner.function)])
        script = self._script(runner.key)
        call = _call(rights, script, runner.function, variadic=runner.variadic)
        arrays = await self._models.run_ordered(script, runner.inputs, call)
        if runner.outputs and len(arrays) != runner.outputs:
            raise ResponseError(OUTPUTS_DIFFER)
        return [Tensor(array) for array in arrays]

    def scriptRunnerRun(self, runner: ScriptRunner) -> list[Tensor]:
        """Runs a script, and waits for it."""
        return self._waited(self.scriptRunnerRunAsync(runner))

    def createDAGRunner(self) -> DagRunner:
        return DagRunner(self._run_graph)

    async def _run_graph(self, runner: DagRunner) -> list[Tensor]:
        """Runs a graph; returns the tensors of its gets, in their order. Raises redis.ResponseError."""
        rights = await self._allowed(
            _read_model(step.key) if step.function is None else _run_script(step.key, step.function)
            for step in runner.steps
            if isinstance(step, RunStep)
        )
        run = await self._models.run_graph(runner.dag(lambda step: self._operation(rights, step)))
        for _, result in run.runs:
            if isinstance(result, Exception):
                raise ResponseError(str(result) or "TIMEOUT the run was cancelled")
        return [Tensor(array) for array in run.got()]

    def _operation(self, rights: Rights, step: RunStep) -> ModelRun:
        if step.function is None:
            return ModelRun(self._models.stored.at(step.key).id, None, step.inputs, step.outputs)
        script = self._script(step.key)
        call = _call(rights, script, step.function, step.keys, step.arguments)
        return ModelRun(script.id, call, step.inputs, step.outputs)

    def _script(self, key: str) -> LoadedModel:
        try:
            return self._models.stored.at(key)
        except ResponseError:
            raise ResponseError(
                f"ERR script key is empty: no script {key} on this shard; store it with AI.SCRIPTSTORE"
            ) from None

    async def _allowed(self, commands: Iterable[Command]) -> Rights:
        """Returns the function's rights, which must allow these commands: a run itself goes past Redis."""
        run = current()
        if run is None:
            raise RuntimeError(OUTSIDE)
        whole(await self._calls.check(run.rights, list(commands)))
        return run.rights

    def _waited(self, run: Coroutine[Any, Any, T]) -> T:
        if self._threads.in_loop():
            run.close()
            raise RuntimeError("Cannot execute onnxruntime model synchronously, use async execution instead")
        caller = current_or_begun_by()

        async def entered() -> T:
            enter(caller)
            return await run

        return self._threads.wait(entered())

    def _run(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        run = current_or_begun_by()
        if run is None:
            raise RuntimeError(OUTSIDE)
        return whole(self._calls.run(run.rights, commands))

    @staticmethod
    def _arguments(tensor: Tensor) -> tuple[Any, ...]:
        dtype, _, data = tensors.encode(tensor.array)
        return (dtype, *tensor.array.shape, "BLOB", data)


def _read_model(key: str) -> Command:
    return ("AI.MODELGET", key, "META")


def _run_script(key: str, function: str) -> Command:
    return ("AI.SCRIPTEXECUTE", key, function)


def _call(
    rights: Rights,
    script: LoadedModel,
    function: str,
    keys: Sequence[str] = (),
    arguments: Sequence[str] = (),
    variadic: int = -1,
) -> ScriptCall:
    """Returns a script's call. Functions that are no entry points take their tensors one by one, as AI.SCRIPTSET's."""
    return ScriptCall(rights.context, function, variadic, function in script.inputs, keys, arguments)


def _from_reply(reply: list[Any]) -> Array:
    fields = dict(zip(reply[::2], reply[1::2], strict=True))
    return tensors.decode(fields[b"dtype"].decode(), tuple(fields[b"shape"]), fields[b"blob"])


def module(calls: Calls, threads: Threads, models: FunctionRuns) -> types.ModuleType:
    """Returns the module `redisAI` of this worker."""
    api = types.ModuleType("redisAI", "Tensors, models and scripts of this shard, as RedisAI has them for RedisGears.")
    keyspace = Keyspace(calls, threads, models)
    functions: list[Callable[..., Any]] = [createTensorFromValues, createTensorFromBlob]
    functions += [tensorToFlatList, tensorGetDataAsBlob, tensorGetDims]
    functions += [createModelRunner, modelRunnerAddInput, modelRunnerAddOutput]
    functions += [createScriptRunner, scriptRunnerAddInput, scriptRunnerAddInputList, scriptRunnerAddOutput]
    functions += [keyspace.setTensorInKey, keyspace.msetTensorsInKeyspace]
    functions += [keyspace.getTensorFromKey, keyspace.mgetTensorsFromKeyspace]
    functions += [keyspace.modelRunnerRunAsync, keyspace.modelRunnerRun]
    functions += [keyspace.scriptRunnerRunAsync, keyspace.scriptRunnerRun, keyspace.createDAGRunner]
    for function in functions:
        setattr(api, function.__name__, function)
    return api
