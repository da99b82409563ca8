"""Draws docs/pictures/overview.svg, the picture of the README: shards, workers and the way of a question.

Run it after a change: `python docs/pictures/overview.py`. A test compares the file with what this script makes.
"""

from pathlib import Path
from xml.sax.saxutils import escape

OUT = Path(__file__).with_suffix(".svg")
WIDTH, HEIGHT = 960, 430
INK, WAY, PAPER, BOX, REDIS, WORKER = "#1f2933", "#b3541e", "#ffffff", "#eef2f5", "#f8e6e0", "#e2eef5"
SHARDS = ("shard 1", "shard 2", "shard 3")
SHARD_TOP, SHARD_STEP, SHARD_HEIGHT = 24, 132, 116  # pixels


def box(x: int, y: int, width: int, height: int, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{INK}"/>'


def text(x: int, y: int, words: str, size: int = 13, colour: str = INK, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}>{escape(words)}</text>'


def arrow(x1: int, y1: int, x2: int, y2: int, both: bool = False, colour: str = WAY) -> str:
    start = ' marker-start="url(#tip)"' if both else ""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="1.6" '
        f'marker-end="url(#tip)"{start}/>'
    )


def clients() -> list[str]:
    callers = (("application", "HTTP"), ("redis-cli, any client", "GET answer:…"), ("your documents", "shardqa ingest"))
    parts = []
    for (who, how), y in zip(callers, (60, 190, 320), strict=True):
        parts += [box(16, y, 168, 52, BOX), text(28, y + 22, who, bold=True), text(28, y + 41, how, 12)]
    return parts


def engine() -> list[str]:
    lines = (
        "1  look in the caches",
        "2  Terms, Rank: every shard",
        "3  merge: the best k passages",
        "4  GET answer:… only there",
        "5  best span, or no answer",
    )
    parts = [box(262, 48, 224, 150, BOX), text(274, 70, "API, CLI: the engine", bold=True)]
    parts += [text(274, 94 + 21 * n, line, 12) for n, line in enumerate(lines)]
    parts += [box(262, 300, 224, 92, BOX), text(274, 322, "loader", bold=True)]
    parts += [text(274, 344, "files become documents, each", 12), text(274, 362, "sent to the shard of its slot", 12)]
    return parts


def shard(name: str, y: int) -> list[str]:
    return [
        box(560, y, 384, SHARD_HEIGHT, PAPER),
        text(572, y + 18, name, 12, bold=True),
        box(572, y + 28, 176, 78, REDIS),
        text(580, y + 46, "redis-server, shardqa.so", 11, bold=True),
        text(582, y + 64, "doc: passage: tokens:", 11),
        text(582, y + 80, "answer: ask:", 11),
        text(582, y + 96, "model: epoch:", 11),
        box(804, y + 28, 128, 78, WORKER),
        text(814, y + 46, "worker (Python)", 12, bold=True),
        text(814, y + 64, "index of its part", 11),
        text(814, y + 80, "BERT reader", 11),
        text(814, y + 96, "your functions", 11),
        arrow(750, y + 67, 802, y + 67, both=True, colour=INK),
        text(753, y + 58, "frames", 11),
    ]


def ways() -> list[str]:
    parts = [arrow(186, 86, 260, 86), arrow(186, 346, 260, 346)]
    parts += [arrow(186, 216, 568, 216, both=True)]  # redis-cli asks a shard itself
    middles = [SHARD_TOP + SHARD_STEP * n + 60 for n in range(len(SHARDS))]
    parts += [arrow(488, 120 + 18 * n, 558, y, both=True) for n, y in enumerate(middles)]
    parts += [arrow(488, 346, 558, 362)]
    return parts


def picture() -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>The way of a question: engine, shards, workers</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{WAY}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        *ways(),
        *clients(),
        *engine(),
    ]
    for n, name in enumerate(SHARDS):
        parts += shard(name, SHARD_TOP + SHARD_STEP * n)
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    OUT.write_text(picture(), encoding="utf-8")
