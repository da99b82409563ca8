"""`shardqa.pipeline("question-answering")`: what Hugging Face's pipeline of that name took and gave, on our reader.

transformers 5 has it no more. Call forms, parameters, defaults and the shape of the result are those of transformers
4.57; what differs is in docs/client-pipeline.md. It knows nothing of a cluster. Threads may share one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias

from shardqa.errors import BadModel
from shardqa.models import shipped, spans
from shardqa.models.reader import MAX_BATCH_ROWS, MAX_ROW_TOKENS
from shardqa.models.session import MODEL_FILE, ReaderSession
from shardqa.models.tokenizer import TOKENIZER_FILE, PassageTokens, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TASK = "question-answering"
INPUTS_AT_ONCE = 256  # inputs that are read together: rows of equal length share batches, and memory stays bounded
WINDOW = 384  # tokens of a row, unless `max_seq_len` says otherwise
OVERLAP = 128  # tokens that two windows share, unless `doc_stride` says otherwise
INPUTS = ("question", "context", "data", "X")
CPUS = ("cpu", -1, None)

Pair: TypeAlias = "Mapping[str, str]"
Result: TypeAlias = "dict[str, Any] | list[dict[str, Any]]"


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of one call; None is the default of the pipeline, or of the library."""

    top_k: int | None = None
    doc_stride: int | None = None
    max_answer_len: int | None = None
    max_seq_len: int | None = None
    handle_impossible_answer: bool | None = None
    align_to_words: bool | None = None
    max_question_len: int | None = None  # taken and, as there with fast tokenizers, not looked at
    padding: bool | str | None = None
    """Taken, and changes nothing: rows of like length are padded to the longest of a batch."""

    def checked(self) -> Parameters:
        for name in ("top_k", "max_answer_len"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} parameter should be >= 1 (got {value})")
        if not 4 < self.length <= MAX_ROW_TOKENS:
            raise ValueError(f"max_seq_len is {self.length}; this reader takes 5 to {MAX_ROW_TOKENS}")
        if not 0 <= self.overlap <= self.length:
            raise ValueError(f"`doc_stride` ({self.overlap}) is larger than `max_seq_len` ({self.length})")
        return self

    @property
    def length(self) -> int:
        return WINDOW if self.max_seq_len is None else self.max_seq_len

    @property
    def overlap(self) -> int:
        return min(self.length // 2, OVERLAP) if self.doc_stride is None else self.doc_stride


NAMES = frozenset(field.name for field in fields(Parameters))


def pipeline(
    task: str = TASK,
    model: str | Path | None = None,
    *,
    device: str | int | None = None,
    batch_size: int | None = None,
    threads: int | None = None,
    **parameters: Any,
) -> QuestionAnswering:
    """A pipeline that answers questions from contexts given with them. Raises BadModel for a folder that is no reader.

    `model` is a reader's folder (model.onnx and tokenizer.json); without it, the reader that comes with shardqa.
    `threads` are those of the network: without it, all processors that this process may use. `parameters` are the
    defaults of its calls, such as `top_k`.
    """
    if task != TASK:
        raise ValueError(f"there is no task {task!r} here; shardqa has {TASK!r}")
    if device not in CPUS:
        raise ValueError(f"device={device!r}: the reader runs on processors; leave device out")
    folder = shipped.checked_folder() if model is None else Path(model)
    return QuestionAnswering(folder, threads or len(os.sched_getaffinity(0)), batch_size, parameters)


class QuestionAnswering:
    """Call it with `question=` and `context=`, each a string or a list of strings."""

    def __init__(self, folder: Path, threads: int, batch_size: int | None, parameters: Mapping[str, Any]) -> None:
        for name in (MODEL_FILE, TOKENIZER_FILE):
            if not (folder / name).is_file():
                raise BadModel(f"{folder} has no {name}; make a reader of a checkpoint with 'shardqa-models export'")
        self.task = TASK
        self.folder = folder
        self._batch_rows = batch_size or MAX_BATCH_ROWS
        self._tokenizer = Tokenizer.load(folder)
        self._session = ReaderSession(folder, threads)
        self._defaults = _parameters(parameters, Parameters()).checked()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A dict of score, start, end and answer for one question; a list of them where `top_k` asks for more.

        A list of questions gives a list of those, an iterator gives an iterator. Raises ValueError, KeyError.
        """
        keywords: dict[str, Any] = {name: kwargs.pop(name) for name in INPUTS if name in kwargs}
        parameters = _parameters(kwargs, self._defaults).checked()
        inputs = _inputs(args, keywords)
        if isinstance(inputs, GeneratorType):
            return self._stream(inputs, parameters)
        examples = [_example(one) for one in inputs]
        results = [result for few in _parts(examples, INPUTS_AT_ONCE) for result in self._read(few, parameters)]
        return results[0] if len(results) == 1 else results

    def _stream(self, examples: Iterator[Any], parameters: Parameters) -> Iterator[Result]:
        for one in examples:
            yield from self._read([_example(one)], parameters)

    def _read(self, examples: Sequence[tuple[str, str]], parameters: Parameters) -> list[Result]:
        tokens = {text: self._tokenizer.passage(text) for pair in examples for text in pair}
        cut = [list(self._windows(tokens[question].ids, tokens[context], parameters)) for question, context in examples]
        rows = [window.row for windows in cut for window in windows]
        logits = iter(self._session.read(rows, self._batch_rows))
        return [
            _conclude(context, tokens[context], windows, [next(logits) for _ in windows], parameters)
            for (_, context), windows in zip(examples, cut, strict=True)
        ]

    def _windows(
        self, question: NDArray[np.int32], context: PassageTokens, parameters: Parameters
    ) -> Iterator[spans.Window]:
        room = parameters.length - 3 - len(question)
        if room <= 0 or (room <= parameters.overlap and len(context) > room):
            raise ValueError(
                f"the question has {len(question)} wordpieces, which leave no room for the context in windows of "
                f"{parameters.length} that share {parameters.overlap}; ask in fewer words, or lower doc_stride"
            )
        yield from spans.overlapping(question, context.ids, parameters.length, min(parameters.overlap, room - 1))


def _conclude(
    text: str,
    tokens: PassageTokens,
    windows: Sequence[spans.Window],
    logits: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]],
    parameters: Parameters,
) -> Result:
    top_k = parameters.top_k or 1
    to_words = parameters.align_to_words is not False
    count = 2 * top_k + spans.SPARE if to_words else top_k
    readings = [
        spans.decode(window, start, end, count, parameters.max_answer_len or 15)
        for window, (start, end) in zip(windows, logits, strict=True)
    ]
    candidates = spans.merge(text, tokens, readings, to_words)
    if parameters.handle_impossible_answer:
        candidates.append(spans.Candidate(min(one.null for one in readings), 0, 0))
    candidates.sort(key=lambda one: -one.score)
    answers = [
        {"score": min(1.0, one.score), "start": one.start, "end": one.end, "answer": text[one.start : one.end]}
        for one in candidates[:top_k]
    ]
    return answers[0] if len(answers) == 1 else answers


def _parameters(named_values: Mapping[str, Any], defaults: Parameters) -> Parameters:
    """The defaults with what is given; `topk` is an old name of `top_k`. Raises TypeError for what is not known."""
    choice = {("top_k" if name == "topk" else name): value for name, value in named_values.items() if value is not None}
    if unknown := sorted(set(choice) - NAMES):
        raise TypeError(f"no parameter {', '.join(unknown)}; the pipeline takes {', '.join(sorted(NAMES))}")
    return replace(defaults, **choice)


def _inputs(args: Sequence[Any], keywords: Mapping[str, Any]) -> Iterable[Any]:
    """Returns the inputs, in any of the forms, as mappings with question and context."""
    if len(args) == 2 and all(isinstance(one, str) for one in args):
        return [{"question": args[0], "context": args[1]}]
    inputs = args[0] if len(args) == 1 else list(args) if args else keywords.get("data", keywords.get("X"))
    if inputs is None:
        return _paired(keywords)
    if isinstance(inputs, Mapping):
        return [inputs]
    if isinstance(inputs, str) or not isinstance(inputs, Iterable):
        raise ValueError("Arguments can't be understood; give question= and context=")
    return inputs


def _paired(keywords: Mapping[str, Any]) -> list[Pair]:
    if "question" not in keywords or "context" not in keywords:
        raise ValueError("Unknown arguments; give question= and context=")
    questions, contexts = keywords["question"], keywords["context"]
    if isinstance(questions, str) and isinstance(contexts, str):
        return [{"question": questions, "context": contexts}]
    if isinstance(questions, list) and isinstance(contexts, str):
        return [{"question": question, "context": contexts} for question in questions]
    if isinstance(questions, list) and isinstance(contexts, list):
        if len(questions) != len(contexts):
            raise ValueError("Questions and contexts don't have the same lengths")
        return [{"question": question, "context": context} for question, context in zip(questions, contexts)]  # noqa: B905
    raise ValueError("Arguments can't be understood; question and context are strings or lists of strings")


def _example(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, Mapping):
        raise ValueError(f"{pair!r:.80} argument needs to be a dictionary with the keys question and context")
    for name in ("question", "context"):
        if name not in pair:
            raise KeyError("You need to provide a dictionary with keys {question:..., context:...}")
        if pair[name] is None:
            raise ValueError(f"`{name}` cannot be None")
        if not isinstance(pair[name], str):
            raise ValueError(f"`{name}` is {type(pair[name]).__name__}, not text")
        if not pair[name]:
            raise ValueError(f"`{name}` cannot be empty")
    return pair["question"], pair["context"]


def _parts(many: Sequence[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    left = iter(many)
    while few := list(islice(left, size)):
        yield few
