"""The call of a script, and those that it may make. Imports no torch: frames are read where nothing may take long."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shardqa.tensors import Array


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A call of one function of a script, with its keys and arguments."""

    context: str  # names the request in calls, which have its user's rights
    function: str
    variadic: int  # index of the first input that goes into a list; -1: none
    entry_point: bool  # takes (tensors, keys, args), as AI.SCRIPTEXECUTE has it; else the tensors one by one
    keys: Sequence[str]
    args: Sequence[str]


@dataclass(frozen=True, slots=True)
class Reach:
    """The two calls that scripts may make; an exception's text is what the script gets."""

    execute: Callable[[str, Sequence[str]], Any]  # context, command
    run_model: Callable[[str, str, Sequence[Array]], list[Array]]  # context, key, inputs
