"""OpenDocument text (odt), slides (odp) and drawings (odg): headings, paragraphs, lists and tables in their order.

odfdo opens them.
"""

import io
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree
from odfdo import Document, Element

from shardqa.files.composer import Composer, figures, one_line
from shardqa.files.exponents import lowered, raised
from shardqa.files.formats import zipped
from shardqa.files.formats.faults import apart, readable
from shardqa.files.formats.numbering import figure
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

DROPPED = frozenset({"office:annotation", "text:tracked-changes", "office:forms", "text:table-of-content"})
FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
IN_A_CELL = "descendant::*[self::text:p or self::text:h][not(ancestor::office:annotation)]"
STYLES = "styles.xml"
STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
MAX_REPEAT = 100  # a cell that stands for many: thousands of empty ones end most rows
MAX_DEPTH = 100  # lists and sections in one another


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY)
    archive = zipped.check(content)
    names = archive.namelist()
    composer = Composer()
    with readable("an OpenDocument file"):
        document = Document(io.BytesIO(content))
        styles = None
        with apart(composer.lost, "its styles"):
            styles = etree.fromstring(zipped.content(archive, STYLES)) if STYLES in names else None
            _mark(document.body._xml_element, composer)
        lists = _Lists([document.body._xml_element.getroottree(), *([styles] if styles is not None else [])])
        for number, page in enumerate(document.body.get_elements("draw:page"), 1):
            composer.at(slide=number)
            with apart(composer.lost, f"slide {number}"):
                _add_slide(composer, page, lists)
        if not composer.marks:
            _add(composer, document.body, lists)
        for note in document.body.get_elements("descendant::office:annotation"):
            author, words = note.get_element("dc:creator"), (_words(p) for p in note.get_elements("text:p"))
            name = one_line(author.text_recursive) if author is not None else ""
            composer.top()
            composer.block(f"Comment of {name}: {' '.join(words)}" if name else " ".join(words))
        title = ""
        with apart(composer.lost, "its title"):
            title = one_line(document.meta.title or "") if "meta.xml" in names else ""
    yield from source.composed(composer, title)


def _mark(body: Any, composer: Composer) -> None:
    """Gives spans that stand above or below the line their mark, and takes out what is struck out."""
    styles = {
        style.get(f"{STYLE}name"): properties
        for style in body.getroottree().iter(f"{STYLE}style")
        for properties in style.iterchildren(f"{STYLE}text-properties")
    }
    for span in list(body.iter(f"{TEXT}span", f"{TEXT}p")):
        properties = styles.get(span.get(f"{TEXT}style-name"), {})
        if properties.get(f"{STYLE}text-line-through-style", "none") != "none":
            composer.struck.append("".join(span.itertext()))
            span[:], span.text = [], ""
        if span.tag == f"{TEXT}p":
            continue
        position = properties.get(f"{STYLE}text-position", "")
        first = position.split(" ")[0]
        if first in ("super", "sub") or (first.rstrip("%").lstrip("-").isdigit() and first != "0%"):
            previous, parent = span.getprevious(), span.getparent()
            before = (previous.tail if previous is not None else parent.text) or ""
            mark = lowered if first.startswith(("sub", "-")) else raised
            words = "".join(span.itertext())
            for child in list(span):
                span.remove(child)
            span.text = mark(before[-1:], words)


class _Lists:
    """Counts the items of numbered lists by their styles."""

    def __init__(self, roots: Iterable[Any]) -> None:
        styles = [style for root in roots for style in root.iter(f"{TEXT}list-style")]
        self._levels = {
            (style.get(f"{STYLE}name"), level.get(f"{TEXT}level")): level for style in styles for level in style
        }
        self._counts: dict[tuple[str, int], int] = {}

    def begin(self, list_: Element, style: str, level: int) -> None:
        """A list goes on from the one before of its style where it says so."""
        if not (
            str(list_.get_attribute("text:continue-numbering")).lower() == "true"
            or list_.get_attribute("text:continue-list")
        ):
            self._counts.pop((style, level), None)

    def mark(self, item: Element, style: str, level: int) -> str:
        """Returns what stands before the next item: `2. `, or `- ` in a list without numbers."""
        form = self._levels.get((style, str(level)))
        if form is None or not form.get(f"{STYLE}num-format"):
            return "- "
        start = str(item.get_attribute("text:start-value") or self._counts.get((style, level), 0) + 1)
        if (style, level) not in self._counts:
            start = form.get(f"{TEXT}start-value") or start
        self._counts[style, level] = figures(start, 1)
        shown = range(level - figures(form.get(f"{TEXT}display-levels"), 1, level) + 1, level + 1)
        number = ".".join(self._figure(style, at) for at in shown)
        return f"{form.get(f'{STYLE}num-prefix', '')}{number}{form.get(f'{STYLE}num-suffix', '')} "

    def _figure(self, style: str, level: int) -> str:
        form = self._levels.get((style, str(level)), {}).get(f"{STYLE}num-format", "1")
        return figure(self._counts.get((style, level), 1), FORMS.get(form, "decimal"))


def _add_slide(composer: Composer, page: Element, lists: _Lists) -> None:
    composer.top()
    for frame in page.get_elements("draw:frame[@presentation:class='title']"):
        composer.heading(" ".join(_words(p) for p in frame.get_elements("descendant::text:p")), 1)
        frame.delete()
    _add(composer, page, lists)


def _add(
    composer: Composer,
    parent: Element,
    lists: _Lists,
    depth: int = 0,
    style: str = "",
    level: int = 0,
    mark: str = "",
    follows: bool = False,
) -> None:
    """Adds what `parent` holds; as an item of a list of a style, which `follows` another, it begins with a mark."""
    if depth > MAX_DEPTH:
        return
    is_item = bool(mark)
    for child in parent.children:
        match child.tag:
            case "text:h":
                heading = child.get_attribute("text:outline-level")
                composer.heading(mark.removeprefix("- ") + _words(child), figures(str(heading), 1))
                mark = ""
            case "text:p":
                words = _words(child)
                if words.strip():
                    composer.block(mark + words, close=follows)
                    mark, follows = "", False
                for box in child.get_elements("descendant::draw:text-box"):
                    _add(composer, box, lists, depth + 1)
            case "text:list":
                own = str(child.get_attribute("text:style-name") or style)
                lists.begin(child, own, level + 1)
                for n, item in enumerate(child.children):
                    bullet = lists.mark(item, own, level + 1) if item.tag == "text:list-item" else "- "
                    _add(composer, item, lists, depth + 1, own, level + 1, bullet, follows=is_item or n > 0)
            case "table:table":
                _table(composer, child)
            case tag if tag not in DROPPED:
                _add(composer, child, lists, depth + 1)


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
    """A merged cell's words stand in each place that it takes; one that is a row of its own stays one."""
    rows: list[list[str]] = []
    hanging: dict[tuple[int, int], str] = {}
    for n, line in enumerate(table.get_elements("descendant::table:table-row")):
        row: list[str] = []
        rows.append(row)
        cells = [cell for cell in line.children if cell.tag in ("table:table-cell", "table:covered-table-cell")]
        for cell in cells:
            words = " ".join(_words(p) for p in cell.get_elements(IN_A_CELL)) or hanging.get((n, len(row)), "")
            down, across = (_count(cell, f"number-{name}-spanned") for name in ("rows", "columns"))
            is_whole = across == len(cells)
            for at in itertools.product(range(n, n + down), range(len(row), len(row) + (1 if is_whole else across))):
                hanging[at] = words
            row += [words] * _count(cell, "number-columns-repeated")
        while row and not row[-1].strip():
            row.pop()
    if max(map(len, rows), default=0) > 1:
        composer.table(rows)
        return
    for row in rows:
        composer.block(" ".join(row))


def _count(cell: Element, name: str) -> int:
    return figures(str(cell.get_attribute(f"table:{name}")), 1, MAX_REPEAT)
