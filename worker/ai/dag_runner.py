"""`redisAI.createDAGRunner()`: a graph that a function builds, step by step or from the words of AI.DAGEXECUTE."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from redis import ResponseError

from shardqa import tensors
from shardqa.tensors import Array, BadTensor
from shardqa.worker.ai.dag import BLOB, LOADED, Dag, Get, ModelRun

SEPARATOR = "|>"
FLOATS = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
MOST_ZEROS = 1 << 20  # elements of a tensor without values


class Tensor:
    """The immutable tensor that `import redisAI` gives to functions; `array` is its numpy form."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


@dataclass(frozen=True, slots=True)
class RunStep:
    """A run of a model, or of a script where it names a function."""

    key: str
    function: str | None
    inputs: Sequence[str]
    outputs: Sequence[str]
    keys: Sequence[str] = ()
    arguments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SetStep:
    name: str
    array: Array


Step: TypeAlias = Get | RunStep | SetStep
Find: TypeAlias = Callable[[RunStep], ModelRun]  # the model or script of a step


class DagRunner:
    """A graph that a script builds; every step gives the runner back. `Run` may be awaited any number of times."""

    def __init__(self, run: Callable[[DagRunner], Awaitable[list[Tensor]]]) -> None:
        self._run = run
        self._loaded: dict[str, Array] = {}
        self.steps: list[Step] = []

    def Input(self, name: str, tensor: Tensor) -> DagRunner:
        self._loaded[name] = tensor.array
        return self

    def TensorSet(self, name: str, tensor: Tensor) -> DagRunner:
        self.steps.append(SetStep(name, tensor.array))
        return self

    def TensorGet(self, name: str) -> DagRunner:
        self.steps.append(Get(name, BLOB))
        return self

    def ModelRun(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> DagRunner:
        self.steps.append(RunStep(name, None, list(inputs), list(outputs)))
        return self

    def ScriptRun(self, name: str, func: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> DagRunner:
        self.steps.append(RunStep(name, func, list(inputs), list(outputs)))
        return self

    def OpsFromString(self, ops: str) -> DagRunner:
        """Adds operations from the words of AI.DAGEXECUTE. Raises redis.ResponseError."""
        before, *operations = _split(ops.split())
        if before or not operations:
            raise ResponseError(f"ERR the operations of a DAG begin with {SEPARATOR}")
        self.steps += [_operation(words) for words in operations]
        return self

    def Run(self) -> Awaitable[list[Tensor]]:
        return self._run(self)

    def dag(self, find: Find) -> Dag:
        """Returns the graph for a DagExecution; `find` turns a run into its model. Raises redis.ResponseError."""
        if not self.steps:
            raise ResponseError("ERR DAG is empty")
        graph = Dag(0, {(LOADED, name): array for name, array in self._loaded.items()})
        last = dict.fromkeys(self._loaded, LOADED)
        for index, step in enumerate(self.steps):
            names = step.inputs if isinstance(step, RunStep) else [step.name] if isinstance(step, Get) else ()
            if missing := [name for name in names if name not in last]:
                raise ResponseError(f"ERR INPUT key cannot be found in DAG: {missing[0]}")
            graph.sources.append({name: last[name] for name in names})
            if isinstance(step, SetStep):
                graph.values[index, step.name] = step.array
                graph.operations.append(None)
                last[step.name] = index
                continue
            graph.operations.append(find(step) if isinstance(step, RunStep) else step)
            last |= dict.fromkeys(step.outputs if isinstance(step, RunStep) else (), index)
        return graph


# ---- operations as words ----


def _split(words: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _operation(words: Sequence[str]) -> Step:
    if not words:
        raise ResponseError("ERR DAG is empty")
    name, *rest = words
    arguments = iter(rest)
    try:
        match name.upper():
            case "AI.TENSORGET":
                return Get(next(arguments), BLOB)
            case "AI.TENSORSET":
                return _set(next(arguments), list(arguments))
            case "AI.MODELEXECUTE":
                key, lists = next(arguments), _lists(arguments, ("INPUTS", "OUTPUTS"))
                return RunStep(key, None, lists["INPUTS"], lists["OUTPUTS"])
            case "AI.SCRIPTEXECUTE":
                key, function = next(arguments), next(arguments)
                lists = _lists(arguments, ("KEYS", "INPUTS", "ARGS", "OUTPUTS"))
                return RunStep(key, function, lists["INPUTS"], lists["OUTPUTS"], lists["KEYS"], lists["ARGS"])
    except BadTensor as error:
        raise ResponseError(f"ERR {error}") from None
    except (StopIteration, ValueError):
        raise ResponseError(f"ERR wrong number of arguments for '{name}' command") from None
    raise ResponseError(f"ERR Unsupported command within DAG: {name}")


def _lists(words: Iterator[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Parses `INPUTS 2 a b OUTPUTS 1 c` into lists by name. Raises StopIteration, ValueError, redis.ResponseError."""
    lists: dict[str, list[str]] = {word: [] for word in names}
    for word in words:
        if word.upper() not in lists:
            raise ResponseError(f"ERR Invalid argument: {word}")
        lists[word.upper()] = [next(words) for _ in range(int(next(words)))]
    return lists


def _set(name: str, words: list[str]) -> SetStep:
    """Parses `FLOAT 2 2 VALUES 1 2 3 4`, behind AI.TENSORSET and the name. Raises ValueError, redis.ResponseError."""
    dtype, *rest = words
    at = next((number for number, word in enumerate(rest) if word.upper() in ("VALUES", "BLOB")), len(rest))
    if rest[at : at + 1] and rest[at].upper() == "BLOB":
        raise ResponseError("ERR no word is a BLOB; give such a tensor to TensorSet")
    shape, values = tuple(map(int, rest[:at])), rest[at + 1 :]
    if at == len(rest):  # zeros
        if not 0 < math.prod(shape) <= MOST_ZEROS:
            raise BadTensor("invalid or negative value found in tensor shape")
        values = ["" if dtype.upper() == "STRING" else "0"] * math.prod(shape)
    return SetStep(name, tensors.from_values(dtype.upper(), shape, [_value(dtype.upper(), word) for word in values]))


def _value(dtype: str, word: str) -> str | float:
    if dtype == "STRING":
        return word
    return float(word) if dtype in FLOATS else int(word)
