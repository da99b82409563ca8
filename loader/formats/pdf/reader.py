"""PDF: the text of each page, its lines joined into paragraphs, with page numbers and the outline's headings.

pdfium reads it, as Chromium does. Pages without text are told apart: scans.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pypdfium2 as pdfium
from pypdfium2 import raw

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line
from shardqa.loader.formats.pdf import legible, page, paragraphs, scanned, tables
from shardqa.loader.formats.pdf.paragraphs import PageText
from shardqa.loader.formats.pdf.rules import has_picture, rules
from shardqa.loader.source_file import MAX_BINARY, Item, Lost, SourceFile

DOTS = 200  # an inch of a page that is recognized
MAX_SIDE = 4_000  # pixels of it
MAX_PAGES = 20_000
MAX_OUTLINE = 20_000  # entries; an outline may refer to itself
ENCRYPTED = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)


@dataclass(slots=True)
class _Pages:
    """Pages of a file that were read, and those that were not; numbers are from 1."""

    texts: list[PageText] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    illegible: list[int] = field(default_factory=list)
    faults: list[tuple[int, str]] = field(default_factory=list)


def read(source: SourceFile) -> Iterator[Item]:
    document = _open(source.read_all(MAX_BINARY))
    try:
        pages = _pages(document, source.ocr)
        if not any(text.blocks for text in pages.texts):
            raise BadDocument(_without_text(pages))
        composer = Composer()
        paragraphs.compose(composer, pages.texts, _outline(document))
        yield source.composed(composer, _title(document))
    finally:
        document.close()
    yield from _lost(source.label, pages)


def _open(content: bytes) -> pdfium.PdfDocument:
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code in ENCRYPTED:
            raise BadDocument("it is encrypted; save it without a password") from error
        raise BadDocument(f"not a PDF that can be read: {_why(error)}") from error
    count = len(document)
    if count > MAX_PAGES:
        document.close()
        raise BadDocument(f"{count:,} pages, at most {MAX_PAGES:,} are read; split it")
    return document


def _pages(document: pdfium.PdfDocument, ocr: bool) -> _Pages:
    pages = _Pages()
    for number in range(1, len(document) + 1):
        try:
            lines, blocks, is_picture = _blocks(document, number)
        except pdfium.PdfiumError as error:
            pages.faults.append((number, _why(error)))
            blocks = []
        else:
            is_text = legible.is_text(lines)
            if ocr and (is_picture or not is_text):
                lines, blocks = _recognized(document, number)
                is_text = True
            if is_picture and not lines:
                pages.empty.append(number)
            elif not is_text:
                pages.illegible.append(number)
        pages.texts.append(paragraphs.page_text(blocks))
    return pages


def _blocks(
    document: pdfium.PdfDocument, number: int
) -> tuple[list[page.TextLine], list[page.TextLine | tables.Table], bool]:
    """(all lines of a page, the same with tables in the place of their own, whether it has a picture and no lines)"""
    sheet = document[number - 1]
    try:
        lines = page.lines(sheet)
        return lines, tables.found(lines, lambda: rules(sheet)), not lines and has_picture(sheet)
    finally:
        sheet.close()


def _recognized(
    document: pdfium.PdfDocument, number: int
) -> tuple[list[page.TextLine], list[page.TextLine | tables.Table]]:
    """Reads a page as a picture of itself, as `_blocks` reads its text."""
    sheet = document[number - 1]
    try:
        scale = min(DOTS / 72, MAX_SIDE / max(sheet.get_size()))
        return scanned.blocks(sheet.render(scale=scale).to_numpy(), scale)
    finally:
        sheet.close()


# ---- what could not be read


def _without_text(pages: _Pages) -> str:
    why = f" ({pages.faults[0][1]})" if pages.faults else ""
    return (
        f"no text layer in its {len(pages.texts)} pages{why}: a scan? "
        "'shardqa ingest --ocr' reads scans, or run OCR over it first, like 'ocrmypdf in.pdf out.pdf'"
    )


def _lost(place: str, pages: _Pages) -> Iterator[Lost]:
    if pages.empty:
        yield Lost(
            place,
            f"no text layer on {_named(pages.empty)}: a picture or a scan? 'shardqa ingest --ocr' reads such pages",
        )
    if pages.illegible:
        yield Lost(
            place,
            f"{_named(pages.illegible)} may be no text: many of the characters or words there are none; "
            "the fonts do not say which letters they draw, so save it anew; "
            "'shardqa ingest --ocr' reads such pages as pictures",
        )
    for number, why in pages.faults:
        yield Lost(place, f"page {number} can't be read: {why}")


def _why(error: BaseException) -> str:
    return f"{type(error).__name__} {str(error)[:120]}".strip()


def _named(numbers: list[int]) -> str:
    """`pages 2, 5 to 9`"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:10])
    more = f" and {len(runs) - 10} more" if len(runs) > 10 else ""
    return f"page{'s' if len(numbers) > 1 else ''} {told}{more}"


# ---- outline and title


def _outline(document: pdfium.PdfDocument) -> dict[int, list[tuple[int, str]]]:
    """Page index -> (level, title) of the outline's entries that point to it, in order."""
    outline: dict[int, list[tuple[int, str]]] = {}
    try:
        for count, entry in enumerate(document.get_toc()):
            target = entry.get_dest()
            index = target.get_index() if target is not None else None
            title = one_line(page.clean(entry.get_title()))
            if index is not None and title:
                outline.setdefault(index, []).append((entry.level + 1, title))
            if count >= MAX_OUTLINE:
                break
    except (pdfium.PdfiumError, ValueError):
        return outline  # an outline is a help, not text: what could be read of it stays
    return outline


def _title(document: pdfium.PdfDocument) -> str:
    return one_line(page.clean(document.get_metadata_value("Title")))
