"""The AI.* commands as words to send, and their replies as Python values. Nothing is sent here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack

from shardqa import tensors
from shardqa.streaming import FilePart, parts_of
from shardqa.tensors import Array
from shardqa.worker.client.faults import AiFault, BadCall, ModelRefused, RunFailed, RunTimedOut

Word: TypeAlias = str | bytes | int | float | memoryview | FilePart
Key: TypeAlias = str | bytes
PAUSES = (0.1, 0.5, 2.0)  # seconds before a command is sent again to a shard that was away: a failover takes that long
REDIRECTS = 4  # followed by a command with a file in it
T = TypeVar("T")


class ModelOptions(TypedDict, total=False):
    """Options of AI.MODELSTORE; one that is left out has Redis' default."""

    device: str
    tag: str
    batch_size: int
    min_batch_size: int
    min_batch_timeout: int  # milliseconds
    padded: Sequence[str]  # inputs whose sequences may differ in length
    inputs: Sequence[str]  # names of a TF graph, as the next
    outputs: Sequence[str]


class ScriptArguments(TypedDict, total=False):
    """Arguments of a script's function, and the keys that its results go to."""

    keys: Sequence[Key]
    inputs: Sequence[Key]
    args: Sequence[Word]
    outputs: Sequence[Key]


@dataclass(frozen=True, slots=True)
class AiCall(Generic[T]):
    words: Sequence[Word]
    key: Key | None  # its slot says where it runs; None: any node
    parse: Callable[[Any], T]
    refused: type[AiFault] = BadCall  # what an error without a class of its own means
    again: bool = True  # may it run twice, where its reply was lost?
    streamed: bool = False  # sent piece by piece: there is a file in it


@dataclass(frozen=True, slots=True)
class StoredModel:
    backend: str
    device: str
    tag: str
    batch_size: int
    min_batch_size: int
    min_batch_timeout: int  # milliseconds
    inputs: Sequence[str]
    outputs: Sequence[str]
    padded: Sequence[str]  # inputs whose sequences may differ in length
    blob: bytes | None  # None unless it was asked for


@dataclass(frozen=True, slots=True)
class StoredScript:
    device: str
    tag: str
    entry_points: Sequence[str]
    source: str


@dataclass(frozen=True, slots=True)
class ModelStatistics:
    """Counts of a model or script, since it was loaded or reset."""

    kind: str  # MODEL or SCRIPT
    backend: str
    device: str
    tag: str
    duration_us: int
    samples: int  # rows; -1 of a script
    calls: int
    errors: int


# ---- tensors


def tensor_words(key: Key, array: Array) -> list[Word]:
    """AI.TENSORSET. Raises BadTensor."""
    name, shape, data = tensors.encode(array)
    return ["AI.TENSORSET", key, name, *(shape.split(",") if shape else ()), "BLOB", data]


def tensor_set(key: Key, array: Array) -> AiCall[None]:
    return AiCall(tensor_words(key, array), key, nothing)


def tensor_get(key: Key) -> AiCall[Array]:
    return AiCall(["AI.TENSORGET", key, "META", "BLOB"], key, array_of)


def array_of(reply: Any) -> Array:
    """The array in a reply to AI.TENSORGET … META BLOB; read-only. Raises BadTensor."""
    fields = _pairs(reply)
    return tensors.decode(_text(fields["dtype"]), tuple(int(n) for n in fields["shape"]), fields["blob"])


# ---- models


def model_store(key: Key, backend: str, file: bytes | Path, **options: Unpack[ModelOptions]) -> AiCall[None]:
    """Raises OSError for a file that can't be read, TypeError for an option that does not exist."""
    _check_names(options, ModelOptions)
    words: list[Word] = ["AI.MODELSTORE", key, backend, options.get("device", "CPU")]
    words += ["TAG", options["tag"]] if options.get("tag") else []
    sizes = {
        "BATCHSIZE": options.get("batch_size"),
        "MINBATCHSIZE": options.get("min_batch_size"),
        "MINBATCHTIMEOUT": options.get("min_batch_timeout"),
    }
    for name, number in sizes.items():
        words += [name, number] if number else []
    words += _counted("PADDED", options["padded"]) if options.get("padded") else []
    inputs, outputs = options.get("inputs", ()), options.get("outputs", ())
    words += [*_counted("INPUTS", inputs), *_counted("OUTPUTS", outputs)] if inputs or outputs else []
    return AiCall([*words, "BLOB", *parts_of(file)], key, nothing, ModelRefused, streamed=True)


def model_get(key: Key, *, blob: bool = False) -> AiCall[StoredModel]:
    return AiCall(["AI.MODELGET", key, "META", *(["BLOB"] if blob else [])], key, _model)


def _model(reply: Any) -> StoredModel:
    fields = _pairs(reply)
    blob = fields.get("blob")
    return StoredModel(
        backend=_text(fields["backend"]),
        device=_text(fields["device"]),
        tag=_text(fields["tag"]),
        batch_size=int(fields["batchsize"]),
        min_batch_size=int(fields["minbatchsize"]),
        min_batch_timeout=int(fields["minbatchtimeout"]),
        inputs=[_text(name) for name in fields["inputs"]],
        outputs=[_text(name) for name in fields["outputs"]],
        padded=[_text(name) for name in fields.get("padded", [])],
        blob=b"".join(blob) if isinstance(blob, list) else blob,
    )


def delete(command: str, key: Key) -> AiCall[None]:
    return AiCall([command, key], key, nothing)


def model_execute(
    key: Key, inputs: Sequence[Key], outputs: Sequence[Key], timeout_ms: int | None = None
) -> AiCall[None]:
    words = ["AI.MODELEXECUTE", key, *_counted("INPUTS", inputs), *_counted("OUTPUTS", outputs), *_timeout(timeout_ms)]
    return AiCall(words, key, ran, RunFailed)


def run(key: Key, arrays: Sequence[Array], outputs: int, timeout_ms: int | None = None) -> AiCall[list[Array]]:
    """Runs a model in one round trip without any key but its own: AI.DAGEXECUTE_RO. Raises BadTensor."""
    sources, results = [f"i{n}" for n in range(len(arrays))], [f"o{n}" for n in range(outputs)]
    words: list[Word] = ["AI.DAGEXECUTE_RO", "ROUTING", key, *_timeout(timeout_ms)]
    for name, array in zip(sources, arrays, strict=True):
        words += ["|>", *tensor_words(name, array)]
    words += ["|>", "AI.MODELEXECUTE", key, *_counted("INPUTS", sources), *_counted("OUTPUTS", results)]
    for name in results:
        words += ["|>", "AI.TENSORGET", name, "META", "BLOB"]
    return AiCall(words, key, lambda reply: _run_outputs(reply, outputs), RunFailed)


def _run_outputs(reply: Any, outputs: int) -> list[Array]:
    results = graph_results(reply)
    return [array_of(result) for result in results[len(results) - outputs :]]


def scan(command: str) -> AiCall[list[tuple[str, str]]]:
    """Keys and tags of one node's models or scripts."""
    return AiCall([command], None, lambda reply: [(_text(key), _text(tag)) for key, tag in reply])


# ---- scripts


def script_store(key: Key, source: str, entry_points: Sequence[str], *, device: str, tag: str) -> AiCall[None]:
    words: list[Word] = ["AI.SCRIPTSTORE", key, device, *(["TAG", tag] if tag else [])]
    return AiCall([*words, *_counted("ENTRY_POINTS", entry_points), "SOURCE", source], key, nothing, ModelRefused)


def script_get(key: Key) -> AiCall[StoredScript]:
    return AiCall(["AI.SCRIPTGET", key, "META", "SOURCE"], key, _script)


def _script(reply: Any) -> StoredScript:
    fields = _pairs(reply)
    points = [_text(name) for name in fields["entry points"]]
    return StoredScript(_text(fields["device"]), _text(fields["tag"]), points, _text(fields["source"]))


def script_execute(
    key: Key, function: str, *, timeout_ms: int | None = None, **arguments: Unpack[ScriptArguments]
) -> AiCall[None]:
    """Raises TypeError for an argument that does not exist."""
    _check_names(arguments, ScriptArguments)
    words: list[Word] = ["AI.SCRIPTEXECUTE", key, function]
    lists = {
        "KEYS": arguments.get("keys"),
        "INPUTS": arguments.get("inputs"),
        "ARGS": arguments.get("args"),
        "OUTPUTS": arguments.get("outputs"),
    }
    for name, values in lists.items():
        words += _counted(name, values) if values else []
    return AiCall([*words, *_timeout(timeout_ms)], key, ran, RunFailed, again=False)  # it may have changed keys


# ---- the rest


def info(key: Key) -> AiCall[ModelStatistics]:
    return AiCall(["AI.INFO", key], key, _statistics)


def _statistics(reply: Any) -> ModelStatistics:
    fields = _pairs(reply)
    texts = [_text(fields[name]) for name in ("type", "backend", "device", "tag")]
    numbers = [int(fields[name]) for name in ("duration", "samples", "calls", "errors")]
    return ModelStatistics(texts[0], texts[1], texts[2], texts[3], numbers[0], numbers[1], numbers[2], numbers[3])


def reset_info(key: Key) -> AiCall[None]:
    return AiCall(["AI.INFO", key, "RESETSTAT"], key, nothing)


def config_get(name: str) -> AiCall[str | int | None]:
    return AiCall(["AI.CONFIG", "GET", name], None, lambda reply: _text(reply) if isinstance(reply, bytes) else reply)


def config_set(name: str, value: Word) -> AiCall[None]:
    return AiCall(["AI.CONFIG", name, value], None, nothing)


# ---- graphs


def graph_results(reply: Any) -> list[Any]:
    """The result of each operation. Raises RunTimedOut, RunFailed."""
    if not isinstance(reply, list):
        ran(reply)
    for result in reply:
        if isinstance(result, Exception):
            fault = RunFailed(str(result))
            fault.results = list(reply)
            raise fault
    return list(reply)


# ---- replies


def nothing(_reply: Any) -> None:
    """Reads OK."""


def ran(reply: Any) -> None:
    """Reads the OK of a run. Raises RunTimedOut."""
    if _text(reply) == "TIMEDOUT":
        raise RunTimedOut("the run's TIMEOUT passed")


def _pairs(reply: Any) -> dict[str, Any]:
    """Names and values, whether they came flat or as a map."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {_text(name).lower(): value for name, value in pairs}


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _check_names(arguments: Mapping[str, object], names: type) -> None:
    """A keyword that is not in the dictionary's type is refused, as Python refuses it of any other function."""
    if unknown := arguments.keys() - names.__annotations__:
        raise TypeError(f"{', '.join(sorted(unknown))} does not exist here, {', '.join(names.__annotations__)} do")


def _counted(name: str, words: Sequence[Any]) -> list[Word]:
    return [name, len(words), *words]


def _timeout(milliseconds: int | None) -> list[Word]:
    return [] if milliseconds is None else ["TIMEOUT", milliseconds]
