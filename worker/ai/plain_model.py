"""The common part of models of libraries that run one request at a time and can't be interrupted."""

from collections.abc import Sequence
from typing import Any, ClassVar

from shardqa.tensors import Array
from shardqa.worker.ai.messages import ModelError


class PlainModel:
    """The base of such models: a subclass sets `inputs`, `outputs`, `splits`, and defines `infer`."""

    concurrent = False
    splits: bool
    inputs: Sequence[str]
    outputs: Sequence[str]
    errors: ClassVar[tuple[type[Exception], ...]] = ()  # that the library raises

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        """Returns the outputs in their order. Raises what the library raises."""
        raise NotImplementedError

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        if len(arrays) != len(self.inputs):
            raise ModelError("ERR Number of keys given as INPUTS here does not match model definition")
        try:
            return self.infer(arrays)
        except self.errors as error:
            raise refused(error) from None

    def sequence_cuts(self, names: frozenset[str]) -> Sequence[Sequence[int] | None]:
        return [None] * len(self.outputs)

    def options(self) -> Any:
        return None

    def terminate(self, options: Any) -> None:
        """Does nothing: a run of such a library can't be interrupted."""


def refused(error: Exception) -> ModelError:
    """Returns a library's error as a ModelError of one line."""
    return ModelError(f"ERR {' '.join(str(error).split())[:600] or type(error).__name__}")
