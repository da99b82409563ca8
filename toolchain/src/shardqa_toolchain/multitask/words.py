"""Labels of words, from character ranges and back; all in the words that the tokenizer sees.

A word is what the tokenizer's pre-tokeniser leaves in one piece: letters and digits between blanks, and every mark by
itself, so that "U.S." has four. It is labelled at its first wordpiece (Devlin et al. 2019, section 5.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shardqa.models.tokenizer import PassageTokens
from shardqa_toolchain.faults import Faulty
from shardqa_toolchain.multitask.tasks import BIO, OUTSIDE


@dataclass(frozen=True, slots=True)
class Mark:
    """A label on text[start:end]."""

    start: int
    end: int
    label: str  # of the range's first word; in the scheme bio "B-x" goes on as "I-x"


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in reading order; int64 [words] each."""

    first: NDArray[np.int64]  # the word's first wordpiece
    start: NDArray[np.int64]  # the word's first character
    end: NDArray[np.int64]  # one past its last

    @classmethod
    def of(cls, tokens: PassageTokens) -> Self:
        if not len(tokens):
            empty = np.zeros(0, dtype=np.int64)
            return cls(empty, empty, empty)
        first = np.flatnonzero(np.diff(tokens.words, prepend=tokens.words[0] - 1))
        end = np.maximum.reduceat(tokens.offsets[:, 1], first).astype(np.int64)
        return cls(first, tokens.offsets[first, 0].astype(np.int64), end)

    def __len__(self) -> int:
        return len(self.first)


def label_words(words: Words, marks: Iterable[Mark], scheme: str) -> tuple[str, ...]:
    """Each word's label, OUTSIDE where no mark is.

    Raises Faulty for a mark that holds no word, begins or ends inside one, or shares one with another mark.
    """
    labels = [OUTSIDE] * len(words)
    covered = np.zeros(len(words), dtype=np.bool_)
    for mark in marks:
        first, last = _touched(words, mark)
        if covered[first:last].any():
            raise Faulty(f"{_shown(mark)} overlaps another one; keep one of them")
        covered[first:last] = True
        rest = f"I-{mark.label[2:]}" if scheme == BIO and mark.label.startswith("B-") else mark.label
        labels[first:last] = [mark.label] + [rest] * (last - first - 1)
    return tuple(labels)


def _touched(words: Words, mark: Mark) -> tuple[int, int]:
    """The first word of a mark and one past its last."""
    touched = np.flatnonzero((words.start < mark.end) & (words.end > mark.start))
    if not len(touched):
        raise Faulty(f"{_shown(mark)} holds no word; give it one or take it away")
    first, last = int(touched[0]), int(touched[-1])
    if words.start[first] < mark.start or words.end[last] > mark.end:
        cut = first if words.start[first] < mark.start else last
        raise Faulty(
            f"{_shown(mark)} cuts the word at characters {words.start[cut]} to {words.end[cut]}; label whole words"
        )
    return first, last + 1


def _shown(mark: Mark) -> str:
    return f"the label {mark.label!r} at characters {mark.start} to {mark.end}"


def entities(words: Words, labels: Sequence[str], scheme: str) -> list[Mark]:
    """Returns marks by labels: in the scheme bio every B-x with the I-x after it, else every word that is not OUTSIDE.

    An I-x after another type begins an entity, as in the CoNLL-2000 scorer.
    """
    marks: list[Mark] = []
    before = OUTSIDE
    for start, end, label in zip(words.start.tolist(), words.end.tolist(), labels, strict=True):
        if label != OUTSIDE:
            kind = label[2:] if scheme == BIO else label
            if scheme == BIO and label.startswith("I-") and before[2:] == kind:
                marks[-1] = Mark(marks[-1].start, end, kind)
            else:
                marks.append(Mark(start, end, kind))
        before = label
    return marks
