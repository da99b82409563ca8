"""A run's log as a picture: the loss on what is learnt and on what is held out, and the learning rate."""

import json
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SMOOTHED = 10  # lines of the log that one point of the loss's curve is the mean of


def draw(log: Path, out: Path) -> None:
    """Draw ``log.jsonl`` of a run as PNG or SVG, by ``out``'s ending."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    steps, means = _smoothed([(line["step"], line["loss"]) for line in lines])
    losses.plot(steps, means, label="learnt from")
    held_out = [(line["step"], line["held_out"]) for line in lines if line["held_out"] is not None]
    if held_out:
        losses.plot(*zip(*held_out, strict=True), marker="o", markersize=3, label="held out")
    losses.set_ylabel("loss (cross entropy, nats)")
    losses.legend(frameon=False)
    rates.plot([line["step"] for line in lines], [line["rate"] for line in lines], color="gray")
    rates.set_ylabel("rate")
    rates.set_xlabel("step")
    figure.savefig(out)


def _smoothed(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    groups = [points[first : first + SMOOTHED] for first in range(0, len(points), SMOOTHED)]
    return [group[-1][0] for group in groups], [sum(loss for _, loss in group) / len(group) for group in groups]
