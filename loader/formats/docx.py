"""Word's docx: paragraphs, headings, lists and tables in their order, then footnotes.

python-docx opens the package and knows the styles; words are taken from the XML itself, since its `Paragraph.text`
leaves out what tracked changes inserted and what stands in text boxes.
"""

import io
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import docx
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml import etree

from shardqa.loader.composer import Composer, one_line
from shardqa.loader.formats import zipped
from shardqa.loader.formats.faults import readable
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile

FOOTNOTES = "/word/footnotes.xml"
WORDS = {qn("w:t"): None, qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
RUN, ALIGN = qn("w:r"), f"{qn('w:rPr')}/{qn('w:vertAlign')}"
MARKS = {"superscript": raised, "subscript": lowered}
BOX = qn("w:txbxContent")
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # says a text box a second time
MAX_NESTED = 20  # tables in tables


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    zipped.check(content)
    composer = Composer()
    with readable("a docx", OpcError, etree.LxmlError):
        document = docx.Document(io.BytesIO(content))
        _add(composer, document.iter_inner_content(), 0)
        _footnotes(composer, document)
        title = one_line(document.core_properties.title or "")
    yield source.composed(composer, title)


def _add(composer: Composer, blocks: Any, depth: int) -> None:
    in_list = False
    for block in blocks:
        if isinstance(block, Table):
            _table(composer, block, depth)
            in_list = False
            continue
        words = _words(block._p)
        level = _level(block)
        if level is not None:
            composer.heading(words, level)
        elif words.strip():
            is_item = block._p.find(f".//{qn('w:numPr')}") is not None or "List" in _style(block)
            composer.block(f"- {words}" if is_item else words, close=is_item and in_list)
            in_list = is_item
        for box in _boxes(block._p):
            composer.block(box)
            in_list = False


def _words(element: Any) -> str:
    """Returns the words of a paragraph itself: runs, links, insertions; not what was deleted, and no text box."""
    pieces: list[tuple[str, str]] = []  # (how it stands to the line, words)
    stack = [(element, "")]
    while stack:
        node, stands = stack.pop()
        if node.tag in WORDS:
            pieces.append((stands, WORDS[node.tag] or node.text or ""))
        elif node.tag not in (BOX, FALLBACK):
            if node.tag == RUN:
                align = node.find(ALIGN)
                stands = align.get(qn("w:val"), "") if align is not None else ""
            stack.extend((child, stands) for child in reversed(list(node)))
    text = ""
    for stands, run in groupby(pieces, key=lambda piece: piece[0]):
        words = "".join(words for _, words in run)
        text += MARKS[stands](text[-1:], words) if stands in MARKS else words
    return text


def _boxes(element: Any) -> Iterator[str]:
    for box in element.iter(BOX):
        if not any(above.tag == FALLBACK for above in box.iterancestors()):
            yield "\n".join(_words(paragraph) for paragraph in box.iter(qn("w:p")))


def _style(paragraph: Paragraph) -> str:
    style = paragraph.style
    return str(style.name or "") if style is not None else ""


def _level(paragraph: Paragraph) -> int | None:
    """1 for the title and the first level of headings; None for text. Styles of any name may have an outline level."""
    name = _style(paragraph).casefold()
    if name == "title":
        return 1
    if name.startswith("heading ") and name[8:].isdigit():
        return int(name[8:])
    style = paragraph.style
    for element in (paragraph._p, style.element if style is not None else None):
        found = element.find(f".//{qn('w:outlineLvl')}") if element is not None else None
        value = found.get(qn("w:val"), "") if found is not None else ""
        if value.isdigit() and int(value) < 9:
            return int(value) + 1
    return None


def _table(composer: Composer, table: Table, depth: int) -> None:
    """Adds a table; one of one column, or that holds tables, only lays the page out."""
    rows = [[_cell(cell) for cell in row.cells] for row in table.rows]
    lays_out = any(cell.tables for row in table.rows for cell in row.cells) or max(map(len, rows), default=0) < 2
    if lays_out and depth < MAX_NESTED:
        seen: set[int] = set()  # a merged cell is met once for each place it takes
        for row in table.rows:
            for cell in row.cells:
                if id(cell._tc) not in seen:
                    seen.add(id(cell._tc))
                    _add(composer, cell.iter_inner_content(), depth + 1)
        return
    composer.table(rows)


def _cell(cell: Any) -> str:
    return " ".join(_words(paragraph._p) for paragraph in cell.paragraphs)


def _footnotes(composer: Composer, document: Any) -> None:
    parts = {str(part.partname): part for part in document.part.package.iter_parts()}
    if FOOTNOTES not in parts:
        return
    root = etree.fromstring(parts[FOOTNOTES].blob, etree.XMLParser(resolve_entities=False, no_network=True))
    composer.top()
    for note in root.iter(qn("w:footnote")):
        composer.block(" ".join(_words(paragraph) for paragraph in note.iter(qn("w:p"))).strip())
