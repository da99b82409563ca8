"""Tasks of a network, and where each stands in its outputs.

Two forms. ``heads``: each task has an output of its own. ``control``: the row's question begins with a sign for each
task of a whole row (``>+|``), and one token classifier says each task's label at its sign, tokens' labels at the
tokens. Either way one pass does all tasks.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from shardqa.errors import BadModel
from shardqa.models.reader import SPANS
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, SPAN_HEAD

# Where the answer stands; whether there is one; a label of the text; a label of each token.
SPAN, ANSWERABLE, TEXT, TOKENS = KINDS = ("span", "answerable", "text", "tokens")
HEADS, CONTROL = FORMS = ("heads", "control")
OUTSIDE = "O"  # the label of tokens outside of all marked places
YES, NO = "yes", "no"  # labels of ANSWERABLE
SIGNS = ">+|~^=*#"  # each is a piece of BERT's vocabularies
SETTING = "tasks"  # of config.json


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    kind: str
    labels: tuple[str, ...] = ()  # none for a span

    @property
    def is_of_row(self) -> bool:
        """Whether it has one label for the whole row."""
        return self.kind in (ANSWERABLE, TEXT)


@dataclass(frozen=True, slots=True)
class HeadSize:
    """A head of the network, as training, ONNX and numpy write it."""

    tensor: str  # what the names of its weights begin with
    outputs: tuple[str, ...]  # two for a span, a logit each; else one with a logit for each label
    width: int
    at_first: bool  # whether only [CLS] is asked


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Everything that a network can do."""

    form: str
    tasks: tuple[Task, ...]

    @property
    def heads(self) -> tuple[HeadSize, ...]:
        if self.form == CONTROL:
            return (HeadSize("classifier", ("control_logits",), len(self.union), at_first=False),)
        return tuple(
            HeadSize(SPAN_HEAD, SPANS, 2, at_first=False)
            if task.kind == SPAN
            else HeadSize(f"heads.{task.name}", (f"{task.name}_logits",), len(task.labels), task.is_of_row)
            for task in self.tasks
        )

    @property
    def union(self) -> tuple[str, ...]:
        """The labels of the control form's classifier: all tasks', each once."""
        return tuple(dict.fromkeys(label for task in self.tasks for label in task.labels))

    @property
    def signs(self) -> str:
        """The text that a row's question begins with."""
        return SIGNS[: sum(task.is_of_row for task in self.tasks)] if self.form == CONTROL else ""

    def place(self, task: Task) -> int:
        """The token of a row that says a whole row's task."""
        return 1 + [one for one in self.tasks if one.is_of_row].index(task) if self.form == CONTROL else 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Reads it from a ``config.json``; raises BadModel when it is not of this form."""
        try:
            setting = config[SETTING]
            tasks = tuple(Task(**{**task, "labels": tuple(task["labels"])}) for task in setting["tasks"])
            return cls(setting["form"], tasks)
        except (KeyError, TypeError) as error:
            raise BadModel(f"config.json names no tasks ({error}); make it by shardqa-models train multitask") from None

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads it from a model's folder; raises BadModel."""
        try:
            return cls.of(json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise BadModel(f"{folder / CONFIG_FILE} can't be read: {error}; write the model again") from None
