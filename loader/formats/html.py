"""HTML as plain text: the blocks of the main part, without menus, scripts and the like; the title from the head.

Parsed by selectolax' lexbor, which takes any soup a browser takes.
"""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shardqa.loader.composer import Composer
from shardqa.loader.formats import depth
from shardqa.loader.source_file import Item, SourceFile

BOILERPLATE = (
    "script, style, noscript, template, nav, header, footer, aside, form, button, select, svg, iframe, object, "
    "canvas, dialog, [hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
MAIN = "main, article, [role=main]"
INLINE = frozenset(  # elements that do not end a line
    re.findall(
        r"\S+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q ruby rb rt rp s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
KEEPS_BLANKS = frozenset({"pre", "textarea"})
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLANKS = re.compile(r"[ \t\n\r\f]+")  # what HTML collapses; a no-break space is kept
MAX_SPAN = 100  # columns or rows that one cell may stand for
MAX_COLUMNS = 1_000  # of a table that is told as sentences
BULLET = "- "


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    title = compose(source.text(), composer)
    yield source.composed(composer, title)


def plain(html: str) -> tuple[str, str]:
    """(title, text) of a page."""
    composer = Composer()
    return compose(html, composer), composer.text


def compose(html: str, composer: Composer) -> str:
    """Adds a page's blocks to `composer`; returns its title."""
    depth.check(html)
    tree = LexborHTMLParser(html)
    title = _title(tree)
    root = tree.body
    if root is None:
        return title
    main = _main(root)
    for node in main.css(BOILERPLATE):
        if not _encloses(node, main):
            node.decompose()
    _Walk(composer).walk(main)
    return title


def _title(tree: LexborHTMLParser) -> str:
    for selector in ("title", "h1"):
        node = tree.css_first(selector)
        words = BLANKS.sub(" ", node.text(deep=True)).strip() if node is not None else ""
        if words:
            return words
    return ""


def _main(root: LexborNode) -> LexborNode:
    """The part marked as main when there is exactly one, else the whole body."""
    marked = root.css(MAIN)
    return marked[0] if len(marked) == 1 and (marked[0].text(deep=True) or "").strip() else root


def _encloses(node: LexborNode, main: LexborNode) -> bool:
    """Selectors look at the main node too, which must not drop itself."""
    return node.mem_id == main.mem_id


class _Walk:
    """Depth first over one tree; iterative, since soup may nest deeper than Python's stack."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._words: list[str] = []  # of the block that has not ended yet
        self._bullet = ""  # stands before the next block: it is a list item
        self._items = 0  # list items since the last other block: they follow each other without a blank line

    def walk(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode | None, str, bool]] = [(root, "", False)]  # (None, tag, _) ends an element
        while stack:
            node, tag, is_pre = stack.pop()
            if node is None:
                self._end(tag)
                continue
            tag = node.tag or ""
            if tag == "-text":
                text = node.text(deep=False) or ""
                self._words.append(text if is_pre else BLANKS.sub(" ", text))
                continue
            if not tag or tag.startswith(("-", "_", "!")):
                continue
            if tag == "table" and (rows := _data(node)) is not None:
                self._table(node, rows)
                continue
            self._begin(tag)
            stack.append((None, tag, False))
            children = list(node.iter(include_text=True))
            stack += [(child, "", is_pre or tag in KEEPS_BLANKS) for child in reversed(children)]
        self._flush()

    def _begin(self, tag: str) -> None:
        if tag == "br":
            self._words.append("\n")
        elif tag not in INLINE:
            self._flush()
            if tag == "li":
                self._bullet = BULLET

    def _end(self, tag: str) -> None:
        if tag in HEADINGS:
            words = "".join(self._words)
            self._words = []
            self._items = 0
            self._composer.heading(words, HEADINGS[tag])
        elif tag not in INLINE and tag != "br":
            self._flush()

    def _flush(self) -> None:
        text = _tidy("".join(self._words))
        self._words = []
        if text:
            self._composer.block(self._bullet + text, close=bool(self._bullet) and self._items > 0)
            self._items = self._items + 1 if self._bullet else 0
            self._bullet = ""

    def _table(self, node: LexborNode, rows: list[list[str]]) -> None:
        self._flush()
        self._items = 0
        caption = node.css_first("caption")
        if caption is not None:
            self._composer.block(_tidy(BLANKS.sub(" ", caption.text(deep=True))))
        has_header = len(rows) > 1 and all(rows[0])
        self._composer.rows(rows[1:] if has_header else rows, rows[0] if has_header else None)


def _tidy(text: str) -> str:
    """Blanks at line ends go, more than one blank line becomes one."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip(" ") for line in text.split("\n"))).strip("\n")


def _data(table: LexborNode) -> list[list[str]] | None:
    """The cells of a table of data, its first row first; None for one that only lays a page out."""
    if table.css_first("table table") is not None:
        return None
    rows: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}  # column -> (rows left, text) of a cell that goes on below
    for line in table.css("tr"):
        cells: list[str] = []
        for cell in (child for child in line.iter() if child.tag in ("td", "th")):
            _fill(cells, hanging)
            if len(cells) >= MAX_COLUMNS:
                break
            words = BLANKS.sub(" ", cell.text(deep=True, separator=" ")).strip()
            below = _span(cell, "rowspan") - 1
            for column in range(len(cells), min(len(cells) + _span(cell, "colspan"), MAX_COLUMNS)):
                if below > 0:
                    hanging[column] = (below, words)
                cells.append(words)
        _fill(cells, hanging)
        if any(cells):
            rows.append(cells[:MAX_COLUMNS])
    return rows if rows and max(map(len, rows)) > 1 else None


def _fill(cells: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    """Cells of rows above that reach into this one."""
    while (found := hanging.pop(len(cells), None)) is not None:
        below, words = found
        if below > 1:
            hanging[len(cells)] = (below - 1, words)
        cells.append(words)


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "1").strip()
    if not value.isascii() or not value.isdigit():
        return 1
    return min(max(int(value[:9]), 1), MAX_SPAN)
