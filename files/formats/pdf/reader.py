"""PDF: the text of each page, its lines joined into paragraphs, with page numbers and the outline's headings.

pdfium reads it, as Chromium does. Pages without text are told apart: scans.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import pypdfium2 as pdfium
from pypdfium2 import raw

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, one_line
from shardqa.files.formats.faults import apart, why
from shardqa.files.formats.pdf import annotations, legible, page, paragraphs, scanned, tables
from shardqa.files.formats.pdf.paragraphs import PageText
from shardqa.files.formats.pdf.rules import has_picture, rules
from shardqa.files.source_file import BY_OCR, MAX_BINARY, Item, Lost, Recognized, SourceFile

DOTS = 200  # an inch of a page that is recognized
MAX_SIDE = 4_000  # pixels of it
MAX_PAGES = 20_000
MAX_OUTLINE = 20_000  # entries; an outline may refer to itself
OBJECT = re.compile(rb"(?<!\d)(\d{1,9})\s+\d+\s+obj\b")
PAGE_OBJECT = re.compile(OBJECT.pattern + rb"\s*<<(?:(?!endobj|stream).){0,5000}?/Type\s*/Page\b", re.DOTALL)
ENCRYPTED = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)


@dataclass(slots=True)
class _Pages:
    """The pages that were read, and the numbers (from 1) of those that were not."""

    texts: list[PageText] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    illegible: list[int] = field(default_factory=list)
    downwards: list[int] = field(default_factory=list)
    unsure: list[int] = field(default_factory=list)
    files: list[tuple[str, bytes]] = field(default_factory=list)  # attached, by name


def read(source: SourceFile) -> Iterator[Item]:
    document, is_mended = _open(source.read_all(MAX_BINARY))
    try:
        is_xfa = document.get_formtype() == raw.FORMTYPE_XFA_FULL
        document.init_forms()
        composer = Composer()
        pages, count = _Pages(), len(document)
        for number in range(1, count + 1):
            text = paragraphs.page_text([])
            with apart(composer.lost, f"page {number}"):
                text = _page(document, number, source.ocr, pages)
            pages.texts.append(text)
            yield from [Recognized(number, count)] * source.ocr
        with apart(composer.lost, "a file in it"):
            for n in range(document.count_attachments()):
                pages.files += annotations.attached(document.get_attachment(n))
        if not any(text.blocks for text in pages.texts):
            raise BadDocument(_without_text(pages, composer.lost))
        outline: dict[int, list[tuple[int, str]]] = {}
        with apart(composer.lost, "a part of its outline"):
            _outline(document, outline)
        paragraphs.compose(composer, pages.texts, outline)
        yield from source.composed(composer, _title(document))
    finally:
        document.close()
    yield from _lost(source.label, pages)
    if is_mended:
        yield Lost(source.label, f"its end is missing; {len(pages.texts)} pages are left of it")
    if is_xfa:
        yield Lost(source.label, "what its form says can't be read, which is Adobe's XFA; print it as PDF")
    for name, content_of_file in pages.files:
        yield from source.inside(name, content_of_file)


def _open(content: bytes) -> tuple[pdfium.PdfDocument, bool]:
    """Opens a file; returns (document, whether its end had to be made anew)."""
    is_mended = False
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code in ENCRYPTED:
            raise BadDocument("it is encrypted; save it without a password") from error
        try:
            document, is_mended = pdfium.PdfDocument(_ended(content)), True
        except pdfium.PdfiumError:
            raise BadDocument(f"not a PDF that can be read: {why(error)}") from error
    count = len(document)
    if count > MAX_PAGES:
        document.close()
        raise BadDocument(f"{count:,} pages, at most {MAX_PAGES:,} are read; split it")
    return document, is_mended


def _ended(content: bytes) -> bytes:
    """Returns a file that was cut off with a new end, which lists the pages that are there."""
    content = content[: content.rfind(b"endobj") + len(b"endobj")]
    pages = [int(match[1]) for match in PAGE_OBJECT.finditer(content)]
    root = max(map(int, OBJECT.findall(content)), default=0) + 1
    kids = b" ".join(b"%d 0 R" % number for number in pages)
    return content + (
        b"\n%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj\n%d 0 obj\n<</Type/Pages/Count %d/Kids[%b]>>\nendobj\n"
        b"trailer\n<</Root %d 0 R/Size %d>>\nstartxref\n0\n%%%%EOF"
        % (root, root + 1, root + 1, len(pages), kids, root, root + 2)
    )


def _page(document: pdfium.PdfDocument, number: int, ocr: bool, pages: _Pages) -> PageText:
    lines, blocks, is_picture, is_text, over = _blocks(document, number)
    if 2 * sum(line.is_downwards for line in lines) > len(lines):
        pages.downwards.append(number)
        blocks = [*sorted(lines, key=lambda line: -line.left)]
    if any(line.is_unsure for line in lines):
        pages.unsure.append(number)
    if ocr and (is_picture or not is_text):
        lines, blocks = _recognized(document, number)
        is_text = True
    if is_picture and not lines:
        pages.empty.append(number)
    elif not is_text:
        pages.illegible.append(number)
    text = paragraphs.page_text(blocks)
    for note in over.notes:
        text.blocks.extend(["", note])
    pages.files += over.files
    return text


def _blocks(
    document: pdfium.PdfDocument, number: int
) -> tuple[list[page.TextLine], list[page.TextLine | tables.Table], bool, bool, annotations.Annotations]:
    """(all lines of a page, the same with tables in their places, whether it is a picture, whether its characters are
    text and all of it, what lies over it)"""
    sheet = document[number - 1]
    try:
        lines, over = page.lines(sheet), annotations.found(document, sheet)
        annotations.fill(lines, over.fields)
        if is_turned := page.is_leftwards(lines):
            page.turn(lines)
        is_text = legible.is_text(lines) and legible.is_whole(sheet, lines)
        blocks = tables.found(lines, lambda: rules(sheet, is_turned))
        return lines, blocks, not lines and has_picture(sheet), is_text, over
    finally:
        sheet.close()


def _recognized(
    document: pdfium.PdfDocument, number: int
) -> tuple[list[page.TextLine], list[page.TextLine | tables.Table]]:
    """Recognizes a page from its picture; returns (all lines, the same with tables in their places)."""
    sheet = document[number - 1]
    try:
        scale = min(DOTS / 72, MAX_SIDE / max(sheet.get_size()))
        return scanned.blocks(sheet.render(scale=scale).to_numpy(), scale)
    finally:
        sheet.close()


# ---- what could not be read


def _without_text(pages: _Pages, losses: list[str]) -> str:
    why = f" ({losses[0]})" if losses else ""
    return (
        f"no text layer in its {len(pages.texts)} {'page' if len(pages.texts) == 1 else 'pages'}{why}: a scan? "
        f"{BY_OCR}; or run OCR over it first, like 'ocrmypdf in.pdf out.pdf'"
    )


def _lost(place: str, pages: _Pages) -> Iterator[Lost]:
    if pages.empty:
        yield Lost(place, f"no text layer on {_named(pages.empty)}: a picture or a scan? {BY_OCR}")
    if pages.illegible:
        yield Lost(
            place,
            f"{_named(pages.illegible)} may be no text: many of the characters or words there are none; "
            f"the fonts do not say which letters they draw, so save it anew; {BY_OCR}",
        )
    if pages.unsure:
        yield Lost(place, f"{_named(pages.unsure)}: columns stand beside one another; their lines may be mixed")
    if pages.downwards:
        why = "written downwards; its columns were taken from right to left, tables and columns below others are mixed"
        yield Lost(place, f"{_named(pages.downwards)}: {why}")


def _named(numbers: list[int]) -> str:
    """Returns the numbers as `pages 2, 5 to 9`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    ranges = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:10])
    more = f" and {len(runs) - 10} more" if len(runs) > 10 else ""
    return f"page{'s' if len(numbers) > 1 else ''} {ranges}{more}"


# ---- outline and title


def _outline(document: pdfium.PdfDocument, outline: dict[int, list[tuple[int, str]]]) -> None:
    """Puts in, by the page's index, (level, title) of the outline's entries that point to it, in order."""
    for entry in islice(document.get_toc(), MAX_OUTLINE):
        target = entry.get_dest()
        index = target.get_index() if target is not None else None
        title = one_line(page.clean(entry.get_title()))
        if index is not None and title:
            outline.setdefault(index, []).append((entry.level + 1, title))


def _title(document: pdfium.PdfDocument) -> str:
    title = one_line(page.clean(document.get_metadata_value("Title")))
    return "" if title in ("untitled", "(anonymous)") else title  # as reportlab calls all it writes
