"""A PDF of 300 pages into three shards: seconds until it is searchable, and pages of answers that are right.

python bench/pdf.py
"""

import asyncio
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter

from common import settings_of, temporary_cluster
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.files import formats
from shardqa.files.source_file import SourceFile
from shardqa.schema import Document

PAGES = 300
LINES = 42  # of a page: about 450 words
ASKED = 20
WORDS = (
    "river",
    "bridge",
    "stone",
    "mill",
    "ferry",
    "harbour",
    "ledger",
    "council",
    "winter",
    "timber",
    "wheel",
    "road",
)


def write(path: Path) -> dict[int, str]:
    """Writes the file; page -> the year that only this page tells of its tower."""
    random, years = Random(3), dict[int, str]()
    canvas = Canvas(str(path), pagesize=A4)
    for page in range(1, PAGES + 1):
        years[page] = str(1500 + page)
        fact = random.randrange(LINES)
        for line in range(LINES):
            text = f"The tower of Place{page:03d} was finished in {years[page]}." if line == fact else filler(random)
            canvas.drawString(60, 790 - 17 * line, text)
        canvas.showPage()
    canvas.save()
    return years


def filler(random: Random) -> str:
    return f"{' '.join(random.choices(WORDS, k=10)).capitalize()}."


async def measure(settings: Settings, content: bytes, years: dict[int, str]) -> None:
    async with await Engine.connect(settings) as engine:
        start = perf_counter()
        source = SourceFile.of_bytes(content, "towers.pdf", "towers.pdf", "bench:towers.pdf", formats.read)
        for item in formats.read(source):
            assert isinstance(item, Document), item
            await engine.documents.put(item.model_copy(update={"corpus": settings.corpus}))
        took = perf_counter() - start
        right = 0
        for page in Random(5).sample(sorted(years), ASKED):
            answer = await engine.ask(f"When was the tower of Place{page:03d} finished?")
            right += answer.answer == years[page] and answer.place is not None and answer.place.page == page
        print(f"{PAGES} pages, {len(content) / 1e6:.1f} MB: searchable in {took:.1f} s")
        print(f"answers right, on the right page: {right} of {ASKED}")


def main() -> None:
    with temporary_cluster(shards=3) as cluster, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "towers.pdf"
        years = write(path)
        asyncio.run(measure(settings_of(cluster), path.read_bytes(), years))


if __name__ == "__main__":
    main()
