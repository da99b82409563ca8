"""PDF: the text of each page, its lines joined into paragraphs, with page numbers and the outline's headings.

pypdf reads it: pure Python, so that a hostile file can raise but not crash. Pages without text are told apart: scans.
"""

import io
import logging
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line
from shardqa.loader.source_file import MAX_BINARY, Item, Lost, SourceFile

MAX_PAGES = 20_000
MAX_OUTLINE = 20_000  # entries; an outline may refer to itself
MARGIN = 2  # lines at the top and at the bottom of a page that may be a running head or foot
REPEATED = 0.5  # share of the pages that a running head stands on, at least
LEAST_PAGES = 4  # of a document whose running heads can be told from its text
FULL = 0.7  # of the page's longest line: a shorter line ends its paragraph
DIGITS = re.compile(r"\d+")
HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
SENTENCE_END = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
LIST_ITEM = re.compile(r"(?:[-•*▪◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
FAULTS = (
    *(PyPdfError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, ArithmeticError),
    *(AssertionError, NotImplementedError, OSError, struct.error, zlib.error),
)
"""What pypdf raises of damaged files: its parsers trust what they find."""

logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # its warnings of each oddity; what matters is told as Lost


def read(source: SourceFile) -> Iterator[Item]:
    reader = _open(source.read_all(MAX_BINARY))
    pages, faults = _pages(reader)
    if not any(page.strip() for page in pages):
        raise BadDocument(
            f"no text layer in its {len(pages)} pages{'' if not faults else f' ({faults[0][1]})'}: a scan? "
            "run OCR over it first, like 'ocrmypdf in.pdf out.pdf'"
        )
    composer = Composer()
    _compose(composer, pages, _outline(reader))
    yield source.composed(composer, _title(reader))
    empty = [n for n, page in enumerate(pages, 1) if not page.strip() and n not in dict(faults)]
    if empty:
        yield Lost(source.shown, f"no text layer on {_named(empty)}: a picture or a scan?")
    for number, why in faults:
        yield Lost(source.shown, f"page {number} can't be read: {why}")


def _open(content: bytes) -> PdfReader:
    try:
        reader = PdfReader(io.BytesIO(content), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadDocument("it is encrypted; save it without a password")
        count = len(reader.pages)
    except FAULTS as error:
        raise BadDocument(f"not a PDF that can be read: {_why(error)}") from error
    except ImportError as error:  # pypdf needs a library for AES
        raise BadDocument("it is encrypted with AES; save it without a password") from error
    if count > MAX_PAGES:
        raise BadDocument(f"{count:,} pages, at most {MAX_PAGES:,} are read; split it")
    return reader


def _pages(reader: PdfReader) -> tuple[list[str], list[tuple[int, str]]]:
    """(text of each page, (number, reason) of those that can't be read)."""
    texts, faults = [], []
    for number in range(1, len(reader.pages) + 1):
        try:
            texts.append(_clean(reader.pages[number - 1].extract_text()))
        except FAULTS as error:
            texts.append("")
            faults.append((number, _why(error)))
    return texts, faults


def _clean(text: str) -> str:
    """Without what no encoding or index has room for: NUL, lone surrogates of broken fonts."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")


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


def _outline(reader: PdfReader) -> dict[int, list[tuple[int, str]]]:
    """Page index -> (level, title) of the outline's entries that point to it, in order."""
    found: dict[int, list[tuple[int, str]]] = {}
    try:
        entries = list(_entries(reader.outline, 1))
        for level, entry in entries:
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0 and entry.title:
                found.setdefault(page, []).append((level, one_line(_clean(str(entry.title)))))
    except FAULTS:
        return found  # an outline is a help, not text: what could be read of it stays
    return found


def _entries(outline: Any, level: int) -> Iterator[tuple[int, Any]]:
    stack = [(level, iter(outline))]
    count = 0
    while stack and count < MAX_OUTLINE:
        depth, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
        elif isinstance(entry, list):
            stack.append((depth + 1, iter(entry)))
        else:
            count += 1
            yield depth, entry


def _title(reader: PdfReader) -> str:
    try:
        return one_line(_clean(str((reader.metadata.title if reader.metadata else None) or "")))
    except FAULTS:
        return ""


# ---- lines to paragraphs


def _compose(composer: Composer, pages: list[str], outline: dict[int, list[tuple[int, str]]]) -> None:
    split = [[line.strip() for line in page.split("\n")] for page in pages]
    running = _running(split)
    for n, lines in enumerate(split):
        composer.at(page=n + 1)
        waiting = list(outline.get(n, []))
        titles = {one_line(title).casefold() for _, title in waiting}
        kept = [
            line
            for at, line in enumerate(lines)
            if line.casefold() in titles or not (_is_margin(at, lines) and _shape(line, n) in running)
        ]
        paragraphs = list(_paragraphs(kept, titles))
        there = {title for _, title in waiting if any(_begins(paragraph, title) for paragraph in paragraphs)}
        for level, title in waiting:
            if title not in there:  # not found on its page, which stands under it as a whole
                composer.under(title, level)
        waiting = [entry for entry in waiting if entry[1] in there]
        for paragraph in paragraphs:
            while waiting and _begins(paragraph, waiting[0][1]):
                level, title = waiting.pop(0)
                composer.under(title, level)
            composer.block(paragraph)


def _begins(paragraph: str, title: str) -> bool:
    return paragraph.casefold().startswith(title.casefold())


def _is_margin(at: int, lines: list[str]) -> bool:
    return at < MARGIN or at >= len(lines) - MARGIN


def _shape(line: str, page: int) -> str:
    """The line with its numbers counted from the page's own, so that page numbers are alike on all pages."""
    return DIGITS.sub(lambda found: f"<{int(found[0][:9]) - page}>", line)


def _running(pages: list[list[str]]) -> set[str]:
    """Shapes of lines that stand at the top or bottom of most pages: running heads, page numbers."""
    if len(pages) < LEAST_PAGES:
        return set()
    counts: Counter[str] = Counter()
    for n, lines in enumerate(pages):
        counts.update({_shape(line, n) for at, line in enumerate(lines) if line and _is_margin(at, lines)})
    return {shape for shape, count in counts.items() if count >= max(REPEATED * len(pages), LEAST_PAGES)}


def _paragraphs(lines: list[str], titles: set[str]) -> Iterator[str]:
    """Lines joined where a sentence goes on, words that were hyphenated at a line's end put together."""
    width = max(map(len, lines), default=0)
    parts: list[str] = []
    for line, after in pairwise([*lines, ""]):
        if not line:
            if parts:
                yield "".join(parts)
            parts = []
            continue
        is_title = line.casefold() in titles or after.casefold() in titles
        if not after or is_title or LIST_ITEM.match(after) or _ends(line, width):
            yield "".join([*parts, line])
            parts = []
        elif HYPHEN.search(line) and after[:1].islower():
            parts.append(HYPHEN.sub("", line))
        else:
            parts.append(line + " ")


def _ends(line: str, width: int) -> bool:
    """Whether a paragraph ends with this line: a short one that ends a sentence, or a very short one."""
    return len(line) < FULL * width and (SENTENCE_END.search(line) is not None or len(line) < 0.5 * width)
