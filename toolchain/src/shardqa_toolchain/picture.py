"""Bars as SVG: a row a thing measured, a panel a figure. The same figures give the same file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

INK, BAR, PAPER = "#1f2933", "#2a6f97", "#ffffff"
LABELS, PANEL, BARS, ROW, TOP = 170, 190, 90, 26, 64  # pixels


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    values: Sequence[float | None]  # of each row; None where there is none
    labels: Sequence[str]
    logarithmic: bool = False


def bars(title: str, rows: Sequence[str], panels: Sequence[Panel]) -> str:
    """Returns the picture as SVG."""
    width, height = LABELS + PANEL * len(panels) + 10, TOP + ROW * len(rows) + 12
    parts = [f'<rect width="{width}" height="{height}" fill="{PAPER}"/>', _text(12, 22, title, 13, bold=True)]
    parts += [_text(12, TOP + ROW * line + 14, row) for line, row in enumerate(rows)]
    for number, panel in enumerate(panels):
        parts += _panel(panel, LABELS + PANEL * number)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(panel: Panel, left: int) -> list[str]:
    parts = [_text(left, TOP - 12, panel.title, bold=True)]
    known = [value for value in panel.values if value]
    for line, (value, label) in enumerate(zip(panel.values, panel.labels, strict=True)):
        y = TOP + ROW * line
        length = _length(value, known, panel.logarithmic) if value else 0.0
        parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{ROW - 8}" fill="{BAR}"/>')
        parts.append(_text(left + round(length) + 4, y + 14, label, 11))
    return parts


def _length(value: float, known: Sequence[float], logarithmic: bool) -> float:
    if not logarithmic:
        return BARS * value / max(known)
    low, high = math.log(min(known) / 2), math.log(max(known))
    return BARS * (math.log(value) - low) / (high - low)


def _text(x: int, y: int, words: str, size: int = 12, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{INK}"{weight}>{escape(words)}</text>'
