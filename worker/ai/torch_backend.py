"""TORCH: TorchScript models, and scripts, whose source is compiled here.

A script reaches Redis by `redis.execute(word, …)`, as the user who runs it, and models of this shard by
`redisAI.model_execute(key, tensors, outputs)`. Both are operators of TorchScript that call back into Python; which
script runs in a thread is kept beside the thread. An operator takes no variable number of arguments, so the words of
`redis.execute` are put into a list before the source is compiled.
"""

import ast
import io
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from redis import ResponseError

from shardqa import tensors
from shardqa.tensors import Array, BadTensor
from shardqa.worker.ai.messages import ModelError
from shardqa.worker.ai.plain_model import PlainModel
from shardqa.worker.ai.scripts import Reach, ScriptCall

ARITY = "ERR wrong number of arguments"  # begins what Redis says then
LONGEST = 900  # characters of an error: TorchScript adds a traceback
ENTRY_POINT = ["List[Tensor]", "List[str]", "List[str]"]  # types of the arguments of every entry point


class TorchModel(PlainModel):
    splits = True  # TorchScript declares no dimensions: who stores a model with BATCHSIZE says so

    def __init__(self, blob: bytes, device: str, threads: int) -> None:
        """Loads TorchScript's file. Raises ModelError."""
        self._device = _device(device, threads)
        try:
            self._module = _untyped(torch.jit.load)(io.BytesIO(blob), map_location=self._device).eval()
            schema = self._module._c._get_method("forward").schema
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"ERR {_line(error)}") from None
        self.inputs: Sequence[str] = [a.name for a in schema.arguments[1:] if not a.has_default_value()]
        self.outputs: Sequence[str] = [""] * _outputs(schema)

    def infer(self, arrays: Sequence[Array]) -> list[Array]:
        return _guarded(lambda: self._module(*_to_torch(arrays, self._device)))


class TorchScript(PlainModel):
    splits = False
    outputs: Sequence[str] = ()

    def __init__(self, source: bytes, device: str, entry_points: Sequence[str], threads: int, reach: Reach) -> None:
        """Compiles the source; `reach` is what it may call. Raises ModelError, also where an entry point is missing."""
        self._device = _device(device, threads)
        self._reach = reach
        _register()
        self._unit = torch.jit.CompilationUnit()
        names = {"redis": torch.ops.redis, "redisAI": torch.ops.redisAI, "torch": torch}
        try:
            self._unit.define(with_lists(source.decode()), names.get)
        except (RuntimeError, ValueError, SyntaxError) as error:  # UnicodeDecodeError is a ValueError
            raise ModelError(f"ERR {_line(error)}") from None
        self._functions = {function.name: function for function in self._unit.get_functions()}
        for name in entry_points:
            if name not in self._functions:
                raise ModelError(f"ERR Function {name} does not exist in the given script.")
            _check_entry_point(name, self._functions[name])
        self.inputs: Sequence[str] = list(entry_points)

    def call(self, call: ScriptCall, arrays: Sequence[Array]) -> list[Array]:
        """Runs one function; returns its tensors. Raises ModelError."""
        function = self._functions.get(call.function)
        if function is None or (call.entry_point and call.function not in self.inputs):
            raise ModelError(f"ERR Function does not exist: {call.function}")
        inputs = _to_torch(arrays, self._device)
        arguments: list[Any] = [inputs, list(call.keys), list(call.args)] if call.entry_point else list(inputs)
        if call.variadic >= 0 and not call.entry_point:
            arguments = [*inputs[: call.variadic], inputs[call.variadic :]]
        _running.script = (self._reach, call.context)
        try:
            return _guarded(lambda: function(*arguments))
        finally:
            _running.script = None

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        raise ModelError("ERR a script is run by AI.SCRIPTEXECUTE")


def _untyped(function: Any) -> Any:
    """Returns the function itself; mypy takes it for Any, since torch declares no types for it."""
    return function


# ---- what scripts call ----

_running = threading.local()  # .script: (Reach, context) of the script that runs in this thread
_registered: list[Any] = []  # the libraries of operators: they go when nobody holds them
_registering = threading.Lock()


def _register() -> None:
    """Registers the operators, once; side effects keep TorchScript from leaving out calls whose result nobody uses."""
    with _registering:
        if _registered:
            return
        for name, schema, function in (
            ("redis", "execute(str[][] words) -> Any", _execute),
            ("redis", "words(Any value) -> str[]", _words),
            ("redis", "asList(Any value) -> Any[]", _as_list),
            ("redisAI", "model_execute(str key, Tensor[] inputs, int num_outputs) -> Tensor[]", _model_execute),
        ):
            library = _untyped(torch.library.Library)(name, "FRAGMENT")
            library.define(schema, alias_analysis="CONSERVATIVE")
            library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
            _registered.append(library)


def _current() -> tuple[Reach, str]:
    script = getattr(_running, "script", None)
    if script is None:
        raise RuntimeError("redis and redisAI are there only inside a script that AI.SCRIPTEXECUTE runs, in its thread")
    reach, context = script
    return reach, context


def _execute(words: list[list[str]]) -> Any:
    reach, context = _current()
    try:
        return _to_script(reach.execute(context, [word for some in words for word in some]))
    except ResponseError as error:
        why = "Invalid argument: " if str(error).startswith(ARITY) else ""  # as RedisAI says it
        raise RuntimeError(f"Redis command returned an error: {why}{error}") from None


def _words(value: Any) -> list[str]:
    """Returns the words that one argument of redis.execute stands for: a list has several."""
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _model_execute(key: str, inputs: list[torch.Tensor], num_outputs: int) -> list[torch.Tensor]:
    reach, context = _current()
    outputs = reach.run_model(context, key, [_to_array(tensor) for tensor in inputs])
    if len(outputs) != num_outputs:
        raise RuntimeError("Number of keys given as OUTPUTS here does not match model definition")
    return _to_torch(outputs, inputs[0].device if inputs else torch.device("cpu"))


def _to_script(reply: Any) -> Any:
    """Returns a reply as TorchScript can hold it: a list has items of one type, so mixed ones become text."""
    match reply:
        case bytes():
            return reply.decode("utf-8", "replace")
        case []:
            return ()  # of an empty list it could not tell the type
        case list():
            items = [_to_script(item) for item in reply]
            alike = (
                bool(items) and all(type(item) is type(items[0]) for item in items) and isinstance(items[0], int | str)
            )
            return items if alike else [str(item) for item in items]
        case _:
            return reply


def with_lists(source: str) -> str:
    """Returns the source with the arguments of each `redis.execute` as one list of their words. Raises SyntaxError."""
    lines = [line.encode() for line in source.split("\n")]
    edits: list[tuple[int, int, bytes]] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not _is_execute(node.func) or node.keywords:
            continue
        for argument in node.args:
            assert argument.end_lineno is not None
            assert argument.end_col_offset is not None
            first, last = argument is node.args[0], argument is node.args[-1]
            edits.append((argument.lineno - 1, argument.col_offset, b"[redis.words(" if first else b"redis.words("))
            edits.append((argument.end_lineno - 1, argument.end_col_offset, b")]" if last else b")"))
    for line, column, text in sorted(edits, reverse=True):
        lines[line] = lines[line][:column] + text + lines[line][column:]
    return b"\n".join(lines).decode()


def _is_execute(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "execute"
        and isinstance(function.value, ast.Name)
        and function.value.id == "redis"
    )


# ---- tensors ----


def _to_torch(arrays: Sequence[Array], device: torch.device) -> list[torch.Tensor]:
    """Returns copies of the arrays, since a script may change its inputs. Raises ModelError."""
    copies: list[torch.Tensor] = []
    for array in arrays:
        if array.dtype == tensors.BFLOAT16:
            tensor = torch.from_numpy(array.view("<i2").copy()).view(torch.bfloat16)
        elif array.dtype == object:
            raise ModelError("ERR TORCH has no tensors of strings; give them to a script as ARGS")
        else:
            tensor = torch.from_numpy(array.copy())
        copies.append(tensor.to(device))
    return copies


def _to_array(tensor: torch.Tensor) -> Array:
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(tensors.BFLOAT16)
    array: Array = plain.numpy()
    return array


def _guarded(function: Callable[[], Any]) -> list[Array]:
    """Calls a function of TorchScript; returns its results as arrays. Raises ModelError."""
    try:
        with torch.inference_mode():
            result = function()
        flat = result if isinstance(result, list | tuple) else [] if result is None else [result]
        if not all(isinstance(tensor, torch.Tensor) for tensor in flat):
            raise ModelError("ERR Function returned something that is no tensor; return tensors, or a list of them")
        return [_to_array(tensor) for tensor in flat]
    except (RuntimeError, ValueError, TypeError, IndexError, MemoryError, BadTensor) as error:
        raise ModelError(f"ERR {_line(error)}") from None


def _outputs(schema: Any) -> int:
    """Returns the number of tensors that `forward` gives; 0 where its type does not say."""
    kinds = [value.type for value in schema.returns]
    if len(kinds) == 1 and kinds[0].kind() == "TupleType":
        kinds = kinds[0].elements()
    return len(kinds) if all(kind.kind() == "TensorType" for kind in kinds) else 0


def _check_entry_point(name: str, function: Any) -> None:
    """Raises ModelError, in RedisAI's words, for a function that takes other arguments than an entry point."""
    types = [str(argument.type) for argument in function.schema.arguments]
    if len(types) != len(ENTRY_POINT):
        raise ModelError(
            f"ERR Wrong number of inputs in function {name}. Expected {len(ENTRY_POINT)} but was {len(types)}"
        )
    if types != ENTRY_POINT:
        signature = f"def {name}(tensors: List[Tensor], keys: List[str], args: List[str])"
        raise ModelError(f"ERR Wrong inputs type in function {name}. Expected signature similar to: {signature}")


def _device(device: str, threads: int) -> torch.device:
    """Returns torch's device, with its number of threads set. Raises ModelError."""
    torch.set_num_threads(threads)
    if device.upper().startswith("CPU"):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ModelError(f"ERR device {device} is not available to this worker's torch; store it on CPU")
    return torch.device("cuda", int(device.partition(":")[2] or 0))


def _line(error: Exception) -> str:
    return str(error).lstrip().replace("\n", " ")[:LONGEST] or type(error).__name__
