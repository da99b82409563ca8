"""Recipes of readers: the start, the data, the schedule, the teachers."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.settings import checked, read_toml, section


@dataclass(frozen=True, slots=True)
class Data:
    # SQuAD files and files of evidence lines (.jsonl); paths are relative to where the command is run.
    train: tuple[str, ...] = ()
    negatives: float = 0.1  # hard negatives a pass, as a share of the answerable questions
    crops: float = 0.0  # share of the rows of which a pass sees only a piece around the answer, another in each pass
    held_out: float = 0.02  # share of the articles that is never learnt from, for calibration and for the held-out loss
    measured: str = ""  # folder of files that the run's figures are of, and that are never learnt from; see `mix`
    max_row: int = 320  # tokens of a row; longer paragraphs are read in windows
    # Leave out questions whose answers do not stand where the file says, rather than refuse the file.
    skip_faulty: bool = False

    def checked(self) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        rules = (
            ("train", bool(self.train), "one SQuAD file or more"),
            ("negatives", 0 <= self.negatives <= 1, "0 to 1"),
            ("crops", 0 <= self.crops <= 1, "0 to 1"),
            ("held_out", 0 <= self.held_out < 1, "0 or more, below 1"),
            ("max_row", 224 <= self.max_row <= 512, "224 to 512"),
        )
        return checked(self, rules)


@dataclass(frozen=True, slots=True)
class Teaching:
    teachers: tuple[str, ...] = ()  # folders of checkpoints; several are an ensemble
    # Share of the loss that compares with the teachers' probabilities; the rest compares with the labels.
    soft: float = 0.7
    temperature: float = 2.0  # divides the logits of both: above 1, what the teachers hold for unlikely counts for more
    # Folder for what the teachers say of each row, so that they read no row twice; without it they always read.
    kept: str = ""

    def checked(self) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        rules = (
            ("teachers", bool(self.teachers), "one folder or more"),
            ("soft", 0 <= self.soft <= 1, "0 to 1"),
            ("temperature", self.temperature > 0, "a number above 0"),
        )
        return checked(self, rules)


@dataclass(frozen=True, slots=True)
class Recipe:
    start: str = ""  # folder of the checkpoint to start from
    data: Data = field(default_factory=Data)
    schedule: Schedule = field(default_factory=Schedule)
    teaching: Teaching = field(default_factory=Teaching)
    evidence: bool = False  # whether the reader gets the outputs evidence and relevance where the start has none

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a recipe's TOML; raises BadData with the setting that is unknown or of the wrong kind."""
        tables = read_toml(path)
        data = section(path, "data", Data, tables.pop("data", {}))
        schedule = section(path, "schedule", Schedule, tables.pop("schedule", {}))
        teaching = section(path, "teaching", Teaching, tables.pop("teaching", {}))
        return section(path, "", cls, {**tables, "data": data, "schedule": schedule, "teaching": teaching})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
