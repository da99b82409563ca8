"""ONNX readers whose lowest layers see question and passage apart: what these say of a passage is kept.

Such a file is a reader in one piece like any other, and says by SPLIT_AT which value its lower layers end with. It is
cut there into two networks. The lower one is run for the question, and for passages whose states are not kept; the
upper one for both together. States go through int8 whether they were kept or not, so that a row has the same logits,
to the bit, however often it is read and however much is kept. Rows that are no question with a passage go through both
networks as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from shardqa import machine
from shardqa.models.reader import PAD
from shardqa.models.split import packed, unpacked
from shardqa.module.worker.ai import stored_states
from shardqa.module.worker.ai.array_cache import ArrayCache, Arrays
from shardqa.module.worker.ai.backend import File, ModelError, OnnxModel, sequence_cuts
from shardqa.module.worker.ai.batching import EncodedPassage
from shardqa.module.worker.ai.onnx_cut import CutOnnx
from shardqa.module.worker.ai.protobuf import BadProtobuf

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardqa.tensors import Array

    Tokens = NDArray[np.int64]

IDS, MASK, TYPES = NAMES = ("input_ids", "attention_mask", "token_type_ids")
QUESTION, PASSAGE = 0, 1  # of TYPES
SCALE_BYTES = 4  # of a token's states in int8, beside a byte a number
QUESTION_BYTES = 1 << 20  # kept of a model's last questions: one is read in several runs


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    question: Tokens
    passage: Tokens
    key: bytes  # of the passage's states

    @property
    def end(self) -> int:
        return len(self.question) + len(self.passage)


class SplitModel:
    concurrent = True

    def __init__(self, file: File, content: bytes, value: str, threads: int, kept: ArrayCache) -> None:
        """`content`: the file, without its weights where they lie in a file. Raises ModelError."""
        self._kept = kept
        self._asked = ArrayCache(QUESTION_BYTES)
        self._value = value
        self._digest = _digest(file)
        self._is_same_everywhere = file.device.upper().startswith("CPU")  # _digest does not know one GPU from another
        try:
            cut = CutOnnx(content, value)
            if sorted(cut.inputs) != sorted(NAMES):
                raise BadProtobuf(f"it is split, and its inputs are {', '.join(cut.inputs)} and not {', '.join(NAMES)}")
            self._lower = OnnxModel(replace(file, blob=cut.lower()), threads)
            (sizes,) = self._lower.output_shapes
            if len(sizes) != 3 or not isinstance(sizes[2], int):
                raise BadProtobuf(f"it is split at {value!r}, whose sizes are {sizes} and not [rows, tokens, a number]")
            # sizes that onnxruntime can't compare: it would share memory among intermediate values, which is slower
            self._upper = OnnxModel(replace(file, blob=cut.upper([None, None, sizes[2]])), threads)
        except BadProtobuf as error:
            raise ModelError(f"ERR the model can't be cut: {error}") from None
        self._width = sizes[2]
        self.inputs: Sequence[str] = cut.inputs
        self.outputs: Sequence[str] = self._upper.outputs
        self.splits = self._lower.splits and self._upper.splits

    def run(self, arrays: Sequence[Array], options: Any) -> list[Array]:
        if len(arrays) != len(self.inputs):
            raise ModelError("ERR Number of keys given as INPUTS here does not match model definition")
        given = dict(zip(self.inputs, arrays, strict=True))
        try:
            given[self._value] = self._states(given, options)
        except MemoryError:
            raise ModelError("ERR the worker has no memory for the states of these rows") from None
        return self._upper.run([given[name] for name in self._upper.inputs], options)

    def sequence_cuts(self, padded: frozenset[str]) -> Sequence[Sequence[int] | None]:
        return sequence_cuts(padded, self._lower.input_shapes, self._upper.output_shapes)

    def options(self) -> Any:
        return self._lower.options()

    def terminate(self, options: Any) -> None:
        self._lower.terminate(options)

    def encode(self, passage: Tokens, value: bytes | None, options: Any) -> EncodedPassage | None:
        """Keeps the states of a passage that no question has asked for; None where there is no room.

        `passage`: its part of a row, with the [SEP] at its end; `value`: what was stored of it, which may be anything,
        or None where nothing shall be stored. Raises ModelError.
        """
        key, value = self._key(passage), value if self._is_same_everywhere else None
        read = stored_states.loaded(key, value) if value else None
        if self._kept.peek(key) is None:
            if not self._kept.has_room(len(passage) * (self._width + SCALE_BYTES)):
                return None
            small = read or self._packed(key, passage, options)
            if small is None:
                return EncodedPassage(key)
            if not self._kept.offer(key, small, is_read_back=read is not None):
                return None
        known = self._kept.peek(key) if value is not None and read is None else None
        return EncodedPassage(key, b"" if known is None else stored_states.stored(key, known))

    def _packed(self, key: bytes, passage: Tokens, options: Any) -> Arrays | None:
        """Computed; None where they are not finite: then nothing is kept when the passage is read, either."""
        states = self._computed({key: passage}, PASSAGE, options)[key]
        return packed(states) if np.isfinite(states).all() else None

    def _states(self, given: dict[str, Array], options: Any) -> Array:
        """What the lower layers say of all rows, float32 [rows, tokens, width]."""
        rows = self._rows(given)
        if not rows:
            return self._run_lower(given, options)
        questions, passages = self._questions(rows, options), self._passages(rows, options)
        states = np.zeros((*given[IDS].shape, self._width), np.float32)
        for row in rows:
            states[row.line, : len(row.question)] = questions[row.question.tobytes()]
            states[row.line, len(row.question) : row.end] = passages[row.key]
        others = sorted(set(range(len(states))) - {row.line for row in rows})
        if others:
            states[others] = self._run_lower({name: given[name][others] for name in NAMES}, options)
        return states

    def _questions(self, rows: Sequence[_Row], options: Any) -> dict[bytes, NDArray[np.float32]]:
        """Each question's states by its tokens."""
        tokens = {row.question.tobytes(): row.question for row in rows}
        kept = {key: self._asked.get(key) for key in tokens}
        found = {key: states[0] for key, states in kept.items() if states is not None}
        for key, states in self._computed(_but(tokens, found), QUESTION, options).items():
            self._asked.put(key, (states.copy(),))
            found[key] = states
        return found

    def _passages(self, rows: Sequence[_Row], options: Any) -> dict[bytes, NDArray[np.float32]]:
        """Each passage's states by its key."""
        tokens = {row.key: row.passage for row in rows}
        kept = {key: self._kept.get(key) for key in tokens}
        found = {key: unpacked(*states) for key, states in kept.items() if states is not None}
        for key, states in self._computed(_but(tokens, found), PASSAGE, options).items():
            found[key] = states
            if np.isfinite(states).all():  # int8 has no other
                small = packed(states)
                self._kept.put(key, small)
                found[key] = unpacked(*small)
        return found

    def _rows(self, given: dict[str, Array]) -> list[_Row]:
        """Those that are a question with a passage."""
        ids, mask, types = (given[name] for name in NAMES)
        if ids.ndim != 2 or any(one.shape != ids.shape or one.dtype != np.int64 for one in (ids, mask, types)):
            return []  # onnxruntime says what is wrong with them
        return [row for line in range(len(ids)) if (row := self._row(line, ids[line], mask[line], types[line]))]

    def _row(self, line: int, ids: Tokens, mask: Tokens, types: Tokens) -> _Row | None:
        end = int(np.count_nonzero(mask))
        first = end - int(np.count_nonzero(types[:end]))
        regular = (mask[:end] == 1).all() and (types[:first] == QUESTION).all() and (types[first:end] == PASSAGE).all()
        if not regular or not 0 < first < end:
            return None
        passage = ids[first:end]
        return _Row(line, ids[:first], passage, self._key(passage))

    def _key(self, passage: Tokens) -> bytes:
        return hashlib.sha256(self._digest + passage.tobytes()).digest()

    def _computed(self, parts: dict[bytes, Tokens], type: int, options: Any) -> dict[bytes, NDArray[np.float32]]:
        """The states of parts of one type, in one run."""
        if not parts:
            return {}
        shape = len(parts), max(map(len, parts.values()))
        given = {IDS: np.full(shape, PAD, np.int64), MASK: np.zeros(shape, np.int64), TYPES: np.zeros(shape, np.int64)}
        for line, part in enumerate(parts.values()):
            given[IDS][line, : len(part)] = part
            given[MASK][line, : len(part)] = 1
            given[TYPES][line, : len(part)] = type
        states = self._run_lower(given, options)
        return {key: states[line, : len(part)] for line, (key, part) in enumerate(parts.items())}

    def _run_lower(self, given: dict[str, Array], options: Any) -> Array:
        (states,) = self._lower.run([given[name] for name in self._lower.inputs], options)
        return states


def _but(tokens: Mapping[bytes, Tokens], found: Container[bytes]) -> dict[bytes, Tokens]:
    return {key: part for key, part in tokens.items() if key not in found}


def _digest(file: File) -> bytes:
    """Of the model as it was stored, and how it is run: states of another kind of run differ in bits.

    Raises ModelError.
    """
    processor, version = machine.processor(), metadata.version("onnxruntime")
    runs = f"{file.device.upper()} {'mapped' if file.path else 'whole'} {version} {processor.name} "
    digest = hashlib.sha256(f"{runs} {' '.join(sorted(processor.flags or ()))} ".encode())
    if file.path is None:
        digest.update(file.blob)
        return digest.digest()
    try:
        with file.path.open("rb") as stored:
            digest.update(hashlib.file_digest(stored, "sha256").digest())
    except OSError as error:
        raise ModelError(f"ERR the model's file can't be read: {error}") from None
    return digest.digest()
