"""Tasks of a network: their labels, and where each stands in the network's outputs.

Two forms. ``heads``: every task has an output of its own, so that one pass over ``[CLS] question [SEP] passage [SEP]``
serves all. ``control``: a task is a special token in front of the question, and one token classifier over the union of
all labels serves every task, a row each; the network stays the same however many tasks there are.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shardqa.errors import BadModel
from shardqa.models.reader import SPANS

# Where the answer stands; whether there is one; a label for the text; a label for each of its words.
SPAN, ANSWERABLE, SEQUENCE, TOKENS = KINDS = ("span", "answerable", "sequence", "tokens")

HEADS, CONTROL = FORMS = ("heads", "control")

# How words are labelled: B-x on the first word of an entity of type x, I-x on its others (Ramshaw and Marcus 1995), or
# each word by itself.
BIO, PLAIN = SCHEMES = ("bio", "plain")

OUTSIDE = "O"  # the label of a word of which nothing is said

SETTING = "multitask"  # under this name ``config.json`` holds a TaskSet

CONTROL_OUTPUT = "control_logits"


@dataclass(frozen=True, slots=True)
class Task:
    """One of the things that the network can do."""

    name: str
    kind: str  # one of KINDS
    labels: tuple[str, ...] = ()  # of a sequence or of words, in the order of the logits; empty for the other kinds
    scheme: str = PLAIN  # one of SCHEMES, for words
    control: int | None = None  # id of the token that asks for it; None in the form with heads

    @property
    def outputs(self) -> tuple[str, ...]:
        """The network's outputs in the form with heads: [batch, tokens] for spans, [batch] for answerable, [batch,
        labels] for a sequence, [batch, tokens, labels] for words."""
        if self.kind == SPAN:
            return SPANS
        return ("answerable",) if self.kind == ANSWERABLE else (f"{self.name}_logits",)

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels by which the token classifier of the control form says this task's results."""
        if self.kind == SPAN:
            return OUTSIDE, "B-answer", "I-answer"
        return ("unanswerable", "answerable") if self.kind == ANSWERABLE else self.labels

    @property
    def asks(self) -> bool:
        """Whether it needs a question."""
        return self.kind in (SPAN, ANSWERABLE)


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Everything that a network can do."""

    form: str  # one of FORMS
    tasks: tuple[Task, ...]

    @property
    def union(self) -> tuple[str, ...]:
        """The labels of the control form's classifier: all tasks', each once; equal labels of two tasks share one."""
        return tuple(dict.fromkeys(label for task in self.tasks for label in task.classes))

    def columns(self, task: Task) -> NDArray[np.int64]:
        """Returns the places of the task's classes in the union, int64 [classes]."""
        places = {label: place for place, label in enumerate(self.union)}
        return np.array([places[label] for label in task.classes], dtype=np.int64)

    @property
    def outputs(self) -> tuple[str, ...]:
        if self.form == CONTROL:
            return (CONTROL_OUTPUT,)
        return tuple(name for task in self.tasks for name in task.outputs)

    @property
    def outputs_per_token(self) -> frozenset[str]:
        """The outputs whose second axis is the row's tokens."""
        if self.form == CONTROL:
            return frozenset(self.outputs)
        return frozenset(name for task in self.tasks if task.kind in (SPAN, TOKENS) for name in task.outputs)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read it from a ``config.json``; raises BadModel when it is not there or not of this form."""
        try:
            found = config[SETTING]
            tasks = tuple(Task(**{**task, "labels": tuple(task["labels"])}) for task in found["tasks"])
            made = cls(found["form"], tasks)
        except (KeyError, TypeError) as error:
            raise BadModel(
                f"config.json says no tasks ({error}); train it with shardqa-models train multitask"
            ) from None
        if made.form not in FORMS or not tasks or any(task.kind not in KINDS for task in tasks):
            raise BadModel(f"config.json has the form {made.form!r} and {len(tasks)} tasks; train the model again")
        return made

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The tasks of a model's folder; raises BadModel."""
        path = folder / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            return cls.of(config)
        except (OSError, ValueError) as error:
            raise BadModel(f"{path} can't be read: {error}; export the model again") from None


def bio_labels(types: tuple[str, ...]) -> tuple[str, ...]:
    """The word labels of entity types: O, then B-x and I-x of each."""
    return (OUTSIDE, *(f"{place}-{name}" for name in types for place in "BI"))
