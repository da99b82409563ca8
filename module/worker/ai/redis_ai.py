"""`import redisAI` for functions: tensors, and runs of this shard's models, under RedisAI's names for RedisGears.

Inputs are matched by name when the names are the model's own, else by the order they were added in. Keys are read
and written through Redis as the function's user, so what is set replicates.
"""

import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from redis import ResponseError

from shardqa import tensors
from shardqa.module.worker.calls import first
from shardqa.module.worker.gears.execution import current
from shardqa.module.worker.shard import Shard
from shardqa.tensors import Array


class Tensor:
    """An immutable tensor; `array` is its numpy form."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


@dataclass(slots=True)
class ModelRunner:
    key: str
    inputs: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)


def _tensor(dtype: str, dimensions: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    return dtype.upper(), tuple(int(d) for d in dimensions)


def createTensorFromValues(dtype: str, dimensions: Sequence[int], values: Sequence[Any]) -> Tensor:
    """Raises BadTensor."""
    return Tensor(tensors.from_values(*_tensor(dtype, dimensions), list(values)))


def createTensorFromBlob(dtype: str, dimensions: Sequence[int], blob: bytes | bytearray | memoryview) -> Tensor:
    """Raises BadTensor."""
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


class Keyspace:
    """The functions that reach Redis or a model of one shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

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
        execution = current()
        if execution is not None:  # a run reaches the model beside Redis: its rights are asked for here
            first(await self._shard.calls.check(execution.rights, [("AI.MODELGET", runner.key, "META")]))
        model = self._shard.models.at(runner.key)
        if runner.outputs and len(runner.outputs) != len(model.outputs):
            raise ResponseError("ERR Number of keys given as OUTPUTS here does not match model definition")
        names = list(model.inputs)
        named = set(names) == set(runner.inputs)
        arrays = [runner.inputs[name] for name in names] if named else list(runner.inputs.values())
        return [Tensor(array) for array in await self._shard.models.run_ordered(model, arrays)]

    def modelRunnerRun(self, runner: ModelRunner) -> list[Tensor]:
        """From synchronous functions; an async one awaits modelRunnerRunAsync."""
        if self._shard.threads.in_loop():
            raise RuntimeError("Cannot execute onnxruntime model synchronously, use async execution instead")
        return self._shard.threads.wait(self.modelRunnerRunAsync(runner))

    def _run(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        execution = current()
        if execution is None:
            raise RuntimeError("redisAI reaches keys only from inside a function that runs")
        replies = self._shard.calls.run(execution.rights, commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    @staticmethod
    def _arguments(tensor: Tensor) -> tuple[Any, ...]:
        dtype, _, data = tensors.encode(tensor.array)
        return (dtype, *tensor.array.shape, "BLOB", data)


def _from_reply(reply: list[Any]) -> Array:
    fields = dict(zip(reply[::2], reply[1::2], strict=True))
    return tensors.decode(fields[b"dtype"].decode(), tuple(fields[b"shape"]), fields[b"blob"])


def module(shard: Shard) -> types.ModuleType:
    """The module `redisAI` of this worker."""
    made = types.ModuleType("redisAI", "Tensors and models of this shard, as RedisAI gives them to RedisGears.")
    keyspace = Keyspace(shard)
    for function in (
        *(createTensorFromValues, createTensorFromBlob, tensorToFlatList, tensorGetDataAsBlob, tensorGetDims),
        *(createModelRunner, modelRunnerAddInput, modelRunnerAddOutput),
        *(keyspace.setTensorInKey, keyspace.msetTensorsInKeyspace),
        *(keyspace.getTensorFromKey, keyspace.mgetTensorsFromKeyspace),
        *(keyspace.modelRunnerRunAsync, keyspace.modelRunnerRun),
    ):
        setattr(made, function.__name__, function)
    return made
