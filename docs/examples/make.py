"""Draws the PDFs of the tutorial: python docs/examples/make.py. The same call writes the same bytes."""

from pathlib import Path
from typing import Any

from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

HERE = Path(__file__).parent
FILES = {
    "handbook.pdf": (
        "Handbook of Oakline Ferries",
        [
            [
                ("Working hours", "Crews work four days and are off for three. A shift is ten hours at most."),
                ("Uniforms", "Jackets are handed out in October. Ask the harbour office for another size."),
            ],
            [
                (
                    "Leave",
                    "Parental leave at Oakline Ferries is sixteen weeks on full pay. Ask two months ahead.",
                ),
                ("Notice period", "Whoever leaves gives notice of six weeks, in writing, to the end of a month."),
            ],
        ],
    ),
    "ferries.pdf": (
        "The ferries",
        [
            [
                ("Berta", "The Berta was built in Turku in 2004. She is 44 metres long and takes 212 passengers."),
                ("Alma", "The Alma was built in Gdansk in 2011. She is 61 metres long and takes 400 passengers."),
            ],
        ],
    ),
}


def draw(name: str, folder: Path = HERE) -> None:
    """Needs reportlab, which `make setup-test` brings."""
    path = folder / name
    title, pages = FILES[name]
    styles = getSampleStyleSheet()
    parts: list[Any] = [Paragraph(title, styles["Title"])]
    for number, page in enumerate(pages):
        parts += [PageBreak()] if number else []
        for heading, text in page:
            parts += [Paragraph(heading, styles["Heading1"]), Paragraph(text, styles["Normal"])]
    SimpleDocTemplate(str(path), title=title, invariant=1).build(parts)


if __name__ == "__main__":
    for each in FILES:
        draw(each)
