"""Recipes of networks for several tasks: the start, each task's data, the schedule."""

import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from shardqa.errors import BadData
from shardqa_toolchain.multitask.tasks import (
    ANSWERABLE,
    BIO,
    FORMS,
    HEADS,
    KINDS,
    SCHEMES,
    SEQUENCE,
    SPAN,
    TOKENS,
)
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.settings import checked, read_toml, section

NAME = re.compile("[a-z][a-z0-9_]*")  # a task's name is part of an output's name

LISTS = "train", "dev", "labels"  # settings that are lists of strings

RESERVED = {"start", "end", "control"}  # names whose outputs would be called as others are


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A ``[[task]]`` of a recipe."""

    name: str = ""
    kind: str = ""  # span, answerable, sequence or tokens
    # Files, .jsonl or SQuAD's .json, each also .gz; paths are relative to where the command is run.
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()  # files to measure on; none: the task is not measured
    weight: float = 1.0  # of its loss
    # Of sequences or words, in the order that numbers in the data refer to; types of entities in the scheme bio. Taken
    # from the training files, in the order of the alphabet, unless given.
    labels: tuple[str, ...] = ()
    scheme: str = BIO  # of words: bio or plain

    def checked(self, where: str) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        name_fits = NAME.fullmatch(self.name) is not None and self.name not in RESERVED
        rules = (
            ("name", name_fits, f"a word of small letters, digits and _ other than {', '.join(sorted(RESERVED))}"),
            ("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}"),
            ("train", bool(self.train), "one file or more"),
            *((name, all(isinstance(one, str) for one in getattr(self, name)), "strings") for name in LISTS),
            ("weight", self.weight > 0, "a number above 0"),
            ("labels", len(set(self.labels)) == len(self.labels), "each label once"),
            ("labels", not self.labels or self.kind in (SEQUENCE, TOKENS), "none for this kind"),
            ("scheme", self.scheme in SCHEMES, f"one of {', '.join(SCHEMES)}"),
        )
        return checked(self, rules, f"{where}: ")


@dataclass(frozen=True, slots=True)
class MultitaskRecipe:
    start: str = ""  # folder of the checkpoint to start from
    # heads: an output for each task, all in one pass; control: one classifier, a row and a control token a task.
    form: str = HEADS
    dropout: float = 0.0
    max_row: int = 320  # tokens of a row in training; longer texts are read in windows
    fresh_rate: float = 1.0  # times the schedule's rate, for heads that the start lacks
    keep: float = 0.0  # weight of answering as the start does in the tasks that it knows, beside what the labels say
    skip_faulty: bool = False  # leave out examples that can't be learnt from, rather than refuse their file
    task: tuple[TaskEntry, ...] = ()
    schedule: Schedule = field(default_factory=Schedule)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a recipe's TOML; raises BadData with the setting that is unknown, of the wrong kind or out of range."""
        tables = read_toml(path)
        entries = tables.pop("task", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BadData(f"{path}: tasks are written as [[task]]")
        tasks = [section(path, f"task {number}", TaskEntry, entry) for number, entry in enumerate(entries, 1)]
        schedule = section(path, "schedule", Schedule, tables.pop("schedule", {}))
        plain = section(path, "", cls, {**tables, "schedule": schedule})
        return replace(plain, task=tuple(tasks)).checked(str(path))

    def checked(self, where: str = "the recipe") -> Self:
        """Returns itself; raises BadData with the first setting that can't be."""
        rules = (
            ("start", bool(self.start), "a checkpoint's folder"),
            ("form", self.form in FORMS, f"one of {', '.join(FORMS)}"),
            ("dropout", 0 <= self.dropout < 1, "0 or more, below 1"),
            ("keep", self.keep >= 0, "a number from 0"),
            ("fresh_rate", self.fresh_rate > 0, "a number above 0"),
            ("max_row", 224 <= self.max_row <= 512, "224 to 512"),
            ("task", bool(self.task), "one [[task]] or more"),
        )
        checked(self, rules, f"{where}: ")
        names = [task.checked(f"{where}, task {number}").name for number, task in enumerate(self.task, 1)]
        for name in names:
            if names.count(name) > 1:
                raise BadData(f"{where}: the task {name!r} is there {names.count(name)} times; give each its own name")
        self._check_single_kinds(where)
        return self

    def _check_single_kinds(self, where: str) -> None:
        for kind in (SPAN, ANSWERABLE):
            names = [task.name for task in self.task if task.kind == kind]
            if len(names) > 1:
                which = ", ".join(names)
                raise BadData(f"{where}: {which} are of the kind {kind}, of which one can be; join their files")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
