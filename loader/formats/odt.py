"""OpenDocument text (odt), slides (odp) and drawings (odg): headings, paragraphs, lists and tables in their order.

odfdo opens them.
"""

import io
from collections.abc import Iterator
from typing import Any

from lxml import etree
from odfdo import Document, Element
from odfdo.security import SecurityError

from shardqa.loader.composer import Composer, figures, one_line
from shardqa.loader.formats import zipped
from shardqa.loader.formats.faults import readable
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile

DROPPED = frozenset({"office:annotation", "text:tracked-changes", "office:forms", "text:table-of-content"})
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
MAX_REPEAT = 100  # a cell that stands for many: thousands of empty ones end most rows
MAX_DEPTH = 100  # lists and sections in one another


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    zipped.check(content)
    composer = Composer()
    with readable("an OpenDocument file", SecurityError, etree.LxmlError):
        document = Document(io.BytesIO(content))
        _mark(document.body._xml_element)
        for number, page in enumerate(document.body.get_elements("draw:page"), 1):
            composer.at(slide=number)
            _add_slide(composer, page)
        if not composer.marks:
            _add(composer, document.body, 0)
        title = one_line(document.meta.title or "")
    yield source.composed(composer, title)


def _mark(body: Any) -> None:
    """Gives spans that stand above or below the line their mark."""
    positions = {
        style.get(f"{STYLE}name"): properties.get(f"{STYLE}text-position", "")
        for style in body.getroottree().iter(f"{STYLE}style")
        for properties in style.iterchildren(f"{STYLE}text-properties")
    }
    for span in body.iter(f"{TEXT}span"):
        position = positions.get(span.get(f"{TEXT}style-name"), "")
        first = position.split(" ")[0]
        if first in ("super", "sub") or (first.rstrip("%").lstrip("-").isdigit() and first != "0%"):
            previous, parent = span.getprevious(), span.getparent()
            before = (previous.tail if previous is not None else parent.text) or ""
            mark = lowered if first.startswith(("sub", "-")) else raised
            words = "".join(span.itertext())
            for child in list(span):
                span.remove(child)
            span.text = mark(before[-1:], words)


def _add_slide(composer: Composer, page: Element) -> None:
    composer.top()
    for frame in page.get_elements("draw:frame[@presentation:class='title']"):
        composer.heading(" ".join(_words(p) for p in frame.get_elements("descendant::text:p")), 1)
        frame.delete()
    _add(composer, page, 0)


def _add(composer: Composer, parent: Element, depth: int, bullet: str = "", follows: bool = False) -> None:
    """Adds what `parent` holds; as an item of a list, which `follows` another, it begins with a bullet."""
    if depth > MAX_DEPTH:
        return
    is_item = bool(bullet)
    for child in parent.children:
        match child.tag:
            case "text:h":
                level = child.get_attribute("text:outline-level")
                composer.heading(_words(child), figures(str(level), 1))
            case "text:p":
                words = _words(child)
                if words.strip():
                    composer.block(bullet + words, close=follows)
                    bullet, follows = "", False
                for box in child.get_elements("descendant::draw:text-box"):
                    _add(composer, box, depth + 1)
            case "text:list":
                for n, item in enumerate(child.children):
                    _add(composer, item, depth + 1, "- ", follows=is_item or n > 0)
            case "table:table":
                _table(composer, child)
            case tag if tag not in DROPPED:
                _add(composer, child, depth + 1)


def _words(element: Element) -> str:
    """Text of a paragraph with its blanks, tabs and line breaks; text boxes and comments are not part of it."""
    return _text(element._xml_element)


def _text(node: Any) -> str:
    pieces: list[str] = [node.text or ""]
    for child in node:
        tag = etree.QName(child).localname if isinstance(child.tag, str) else ""
        if tag == "s":
            count = next((v for name, v in child.attrib.items() if name.endswith("}c")), "1")
            pieces.append(" " * figures(count, 1, MAX_REPEAT))
        elif tag == "tab":
            pieces.append("\t")
        elif tag == "line-break":
            pieces.append("\n")
        elif tag == "note":
            body = "".join(_text(part) for part in child if etree.QName(part).localname == "note-body")
            pieces.append(f" ({one_line(body)})" if body.strip() else "")
        elif tag and tag not in ("annotation", "text-box"):
            pieces.append(_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _table(composer: Composer, table: Element) -> None:
    rows = [_row(row) for row in table.get_elements("descendant::table:table-row")]
    if max(map(len, rows), default=0) > 1:
        composer.table(rows)
        return
    for row in rows:
        composer.block(" ".join(row))


def _row(row: Element) -> list[str]:
    cells: list[str] = []
    for cell in row.children:
        if cell.tag in ("table:table-cell", "table:covered-table-cell"):
            repeat = cell.get_attribute("table:number-columns-repeated")
            words = " ".join(_words(p) for p in cell.get_elements("text:p"))
            cells += [words] * figures(str(repeat), 1, MAX_REPEAT)
    while cells and not cells[-1].strip():
        cells.pop()
    return cells
