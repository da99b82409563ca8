"""A run's learning curve: what the held-out rows said now and then, against the rows learnt from."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from shardqa.errors import BadData

CURVE_FILE = "curve.jsonl"


@dataclass(frozen=True, slots=True)
class Point:
    """A look at what is held out."""

    step: int
    rows: int  # learnt from so far, from the run's beginning
    of: int  # rows of the whole run
    rows_a_second: float  # since the run was last taken up, the figures' time included
    at: str  # UTC, ISO 8601
    loss: float  # mean over the last steps, in nats
    figures: Mapping[str, float]  # on what is held out; see `held_out.figures`


def append(path: Path, point: Point) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(point)) + "\n")


def read(work: Path) -> list[Point]:
    """The points of a run's working folder, in order; raises BadData where there are none."""
    path = work / CURVE_FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Point(**json.loads(line)) for line in lines]
    except FileNotFoundError:
        raise BadData(f"{path} is not there: nothing is measured yet, or {work} is no run's --work") from None
    except (OSError, ValueError, TypeError) as error:
        raise BadData(f"{path} can't be read: {error}; the run writes it anew when it is begun anew") from None
