"""What `import redisAI` gives to functions of RG.PYEXECUTE, typed: tensors, and runs of models, scripts and graphs.

The module is there in a node's worker alone; a script imports it at its top or in a function.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Literal, Self, TypeAlias, overload

_Type: TypeAlias = Literal[
    "FLOAT",
    "DOUBLE",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "BOOL",
    "STRING",
    "FLOAT16",
    "BFLOAT16",
    "UINT32",
    "UINT64",
]

class Tensor:
    """Never changes."""

class ModelRunner:
    """A run of a model to come: its inputs and outputs."""

class ScriptRunner:
    """A run of a script's function to come."""

class DagRunner:
    """A graph of operations to come, with names of its own for tensors."""

    def Input(self, name: str, tensor: Tensor) -> Self:
        """A tensor that is there before the first operation."""
    def TensorSet(self, name: str, tensor: Tensor) -> Self:
        """Gives a tensor a name, from this operation on."""
    def TensorGet(self, name: str) -> Self:
        """One more tensor in what `Run` gives."""
    def ModelRun(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Self:
        """Runs the model stored at the key `name`."""
    def ScriptRun(self, name: str, func: str, inputs: Sequence[str] = ..., outputs: Sequence[str] = ...) -> Self:
        """Runs a function of the script stored at the key `name`."""
    def OpsFromString(self, ops: str) -> Self:
        """Operations in the words of AI.DAGEXECUTE, each behind `|>`."""
    def Run(self) -> Awaitable[list[Tensor]]:
        """What the gets got, in their order; an operation that fails raises redis.ResponseError."""

def createTensorFromValues(dtype: _Type, dimensions: Sequence[int], values: Sequence[Any]) -> Tensor:
    """`values` row by row, in one list."""

def createTensorFromBlob(dtype: _Type, dimensions: Sequence[int], blob: bytes | bytearray | memoryview) -> Tensor:
    """The same of little-endian bytes; of strings, each ends with a zero byte."""

def tensorToFlatList(tensor: Tensor) -> list[Any]:
    """The values row by row."""

def tensorGetDataAsBlob(tensor: Tensor) -> bytes:
    """The bytes that createTensorFromBlob takes."""

def tensorGetDims(tensor: Tensor) -> tuple[int, ...]:
    """The dimensions; () for a scalar."""

def setTensorInKey(key: str, tensor: Tensor) -> None:
    """Stores it, as AI.TENSORSET does."""

def msetTensorsInKeyspace(named: dict[str, Tensor]) -> None:
    """The same of several: key -> tensor."""

def getTensorFromKey(key: str) -> Tensor:
    """As AI.TENSORGET; raises redis.ResponseError where there is none."""

def mgetTensorsFromKeyspace(keys: Sequence[str]) -> list[Tensor]:
    """The same of several, in their order."""

def createModelRunner(key: str) -> ModelRunner:
    """For the model stored at this key."""

def modelRunnerAddInput(runner: ModelRunner, name: str, tensor: Tensor) -> int:
    """Inputs go by the model's names, else by their order."""

def modelRunnerAddOutput(runner: ModelRunner, name: str) -> int:
    """One for each output of the model, or none at all."""

def modelRunnerRun(runner: ModelRunner) -> list[Tensor]:
    """The outputs, in a function that is not async."""

async def modelRunnerRunAsync(runner: ModelRunner) -> list[Tensor]:
    """The outputs."""

def createScriptRunner(key: str, function: str) -> ScriptRunner:
    """For a function of the script stored at this key."""

@overload
def scriptRunnerAddInput(runner: ScriptRunner, tensor: str, name: Tensor) -> int:
    """The same with a name first, which means nothing."""

@overload
def scriptRunnerAddInput(runner: ScriptRunner, tensor: Tensor, name: str | None = None) -> int:
    """Inputs go by their order."""

def scriptRunnerAddInputList(runner: ScriptRunner, tensors: Sequence[Tensor]) -> int:
    """The last input, where the function takes a list of tensors."""

def scriptRunnerAddOutput(runner: ScriptRunner, name: str | None = None) -> int:
    """One for each output of the function, or none at all."""

def scriptRunnerRun(runner: ScriptRunner) -> list[Tensor]:
    """The outputs, in a function that is not async."""

async def scriptRunnerRunAsync(runner: ScriptRunner) -> list[Tensor]:
    """The outputs."""

def createDAGRunner() -> DagRunner:
    """For operations that need what others make, side by side where they can."""
