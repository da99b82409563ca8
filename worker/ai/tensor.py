"""The tensor that `import redisAI` gives to functions."""

from shardqa.tensors import Array


class Tensor:
    """An immutable tensor; `array` is its numpy form."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array
