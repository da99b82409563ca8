"""The ladder as a picture: a row a step, from the naive way down to the shipped one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from shardqa.errors import BadData
from shardqa_toolchain.ladder.results import Ladder, Rung

ENDINGS = (".png", ".svg")

COUNTED, BESIDE = "#2a6f97", "#b8c4cc"  # colours of the ladder's steps and of those beside it

Value = Callable[["Rung"], float | None]


def check_ending(out: Path) -> None:
    """Raise BadData unless a picture can be written under this name."""
    if out.suffix.lower() not in ENDINGS:
        raise BadData(f"{out} ends in {out.suffix!r}, {' or '.join(ENDINGS)} is needed")


def draw(ladder: Ladder, out: Path) -> None:
    """Draw throughput, latency, memory, file and F1 of every step as PNG or SVG, by ``out``'s ending.

    Raises BadData for another ending, OSError.
    """
    check_ending(out)
    rungs = [rung for rung in ladder.rungs if rung.figures]
    figure = Figure(figsize=(13, 1.6 + 0.42 * len(rungs)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 5, sharey=True, width_ratios=[3, 2.4, 1.6, 1.6, 1.6])
    for panel, (title, value, log) in zip(panels, _panels(), strict=True):
        _bars(panel, title, rungs, value, log)
    panels[0].set_yticks(range(len(rungs)), [rung.name for rung in rungs])
    panels[0].invert_yaxis()
    gain = f"{ladder.gain:.1f} times the throughput; " if ladder.gain else ""
    figure.suptitle(f"{gain}{ladder.inputs}; {ladder.machine}", fontsize=10)
    # The same figures give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "shardqa"}):
        figure.savefig(out, metadata={"Date": None} if out.suffix.lower() == ".svg" else None)


def _panels() -> list[tuple[str, Value, bool]]:
    return [
        ("questions/s, share of the gain", _figure("throughput"), True),
        ("latency p50, p99 (ms)", _figure("p50"), True),
        ("memory of a process (MB)", _figure("memory"), False),
        ("file (MB)", lambda rung: rung.file, False),
        ("F1", lambda rung: rung.scored.f1 if rung.scored else None, False),
    ]


def _figure(name: str) -> Value:
    def value(rung: Rung) -> float | None:
        found: float | None = getattr(rung.figures, name)
        return found

    return value


def _bars(panel: Axes, title: str, rungs: Sequence[Rung], value: Value, log: bool) -> None:
    known = [(number, rung, found) for number, rung in enumerate(rungs) if (found := value(rung)) is not None]
    colours = [COUNTED if rung.counted else BESIDE for _, rung, _ in known]
    panel.barh([number for number, _, _ in known], [found for _, _, found in known], color=colours, log=log)
    for number, rung, found in known:
        panel.text(found, number, f" {_label(title, rung, found)}", va="center", fontsize=8)
    panel.set_title(title, fontsize=9)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    if known:
        highest, lowest = max(found for _, _, found in known), min(found for _, _, found in known)
        panel.set_xlim(lowest / 2 if log else 0, highest * (8 if log else 1.5))


def _label(title: str, rung: Rung, value: float) -> str:
    if title.startswith("questions") and rung.share is not None:
        return f"{_number(value)}  ({rung.gain:.2f}x, {rung.share:.0%})"
    if title.startswith("latency") and rung.figures and rung.figures.p99 is not None:
        return f"{_number(value)}, {_number(rung.figures.p99)}"
    return f"{value:.1f}" if title.startswith("F1") else _number(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
