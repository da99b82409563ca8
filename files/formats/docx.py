"""Word's docx: what heads the pages, then paragraphs, headings, lists and tables in their order, notes, comments, feet.

Words are taken from the XML itself: what tracked changes inserted and what stands in text boxes and in fields to fill
in is read, what they took away or moved from here is not, nor what is hidden.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, figures, one_line
from shardqa.files.exponents import lowered, raised
from shardqa.files.formats.equation import equation
from shardqa.files.formats.faults import apart, readable
from shardqa.files.formats.numbering import Numbering, W, value
from shardqa.files.formats.ooxml import M, Package, R, Relation, is_on
from shardqa.files.formats.symbols import symbol
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

WORDS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
P, TBL, TR, TC, RUN, BOX = (f"{W}{name}" for name in ("p", "tbl", "tr", "tc", "r", "txbxContent"))
MARKS = {"superscript": raised, "subscript": lowered}
GONE = frozenset(f"{W}{name}" for name in ("del", "moveFrom", "pPr", "rPr", "sdtPr", "tblPr", "tcPr", "trPr", "rt"))
MAX_NESTED = 20  # tables in tables
MAX_SPAN = 100  # columns that one cell may take
SAYS = re.compile(r"[^\W\d_]{2}")  # a word: what more than a page's number has
PAGE_WORDS = re.compile(r"\b(?:page|seite|pagina|of|von|de|di|sur)\b", re.IGNORECASE)


def read(source: SourceFile) -> Iterator[Item]:
    with readable("a docx"):
        package = Package(source.read_all(MAX_BINARY))
        document = _Document(package)
        relations = package.relations(package.main)
        items: list[Item] = []
        with apart(document.composer.lost, "a file in it"):
            items += package.embedded(source, relations)
    yield from source.composed(document.composer, document.title or package.title)
    yield from items


class _Document:
    """One document; to make it is to read it."""

    def __init__(self, package: Package) -> None:
        self.composer = Composer()
        self.title = ""
        self.lost = self.composer.lost
        self._tabbed: list[str] = []  # paragraphs that may be rows of a table
        self._package = package
        self._relations: dict[str, Relation] = {}
        self._styles = _Styles(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"))
        root = package.xml(package.main)
        body = root.find(f"{W}body") if root is not None else None
        if body is None:
            raise BadDocument("not a docx: its document has no body")
        with apart(self.lost, "the head of its pages"):
            self._margins(body, "header")
        self._relations = package.relations(package.main)
        self._add(body, 0)
        self.composer.top()
        for kind, note in (("footnotes", "footnote"), ("endnotes", "endnote"), ("comments", "comment")):
            with apart(self.lost, f"its {kind}"):
                self._notes(kind, f"{W}{note}")
        with apart(self.lost, "the foot of its pages"):
            self._margins(body, "footer")

    def _part(self, kind: str) -> Any:
        with apart(self.lost, f"its {kind}"):
            names = self._package.targets(self._package.main, kind)
            return self._package.xml(names[0]) if names else None
        return None

    def _margins(self, body: Any, kind: str) -> None:
        """Adds the heads or the feet of the pages, each once; those with nothing but a page's number are left out."""
        relations = self._package.relations(self._package.main)
        heads: set[str] = set()
        sections = list(body.iter(f"{W}sectPr"))  # one without heads of its own has those before
        has_first = any(is_on(section.find(f"{W}titlePg"), f"{W}val") for section in sections)
        for section in sections:
            for reference in section.iterfind(f"{W}{kind}Reference"):
                is_first = reference.get(f"{W}type") == "first"
                name = relations.get(reference.get(f"{R}id", ""), Relation("", "")).target
                if name in heads or (is_first and not has_first):
                    continue
                heads.add(name)
                root = self._package.xml(name)
                text = " ".join(self._texts(root)) if root is not None else ""
                if SAYS.search(PAGE_WORDS.sub("", text)) and text not in heads:
                    heads.add(text)
                    self._relations = self._package.relations(name)
                    self._add(root, 0)
                    self.composer.top()

    def _notes(self, kind: str, tag: str) -> None:
        root = self._part(kind)
        for note in root.iter(tag) if root is not None else ():
            author = note.get(f"{W}author", "")
            text = " ".join(" ".join(self._texts(note)).split())
            self.composer.block(f"Comment of {author}: {text}" if author and text else text)

    def _add(self, parent: Any, depth: int) -> None:
        in_list = False
        for block in _within(parent, P, TBL):
            with apart(self.lost, "a table" if block.tag == TBL else "a paragraph"):
                in_list = self._table(block, depth) if block.tag == TBL else self._paragraph(block, depth, in_list)
        self._end_rows()

    def _end_rows(self) -> None:
        self.composer.lines("\n".join(self._tabbed))
        self._tabbed.clear()

    def _paragraph(self, block: Any, depth: int, in_list: bool) -> bool:
        """Adds a paragraph, behind an item of a list if `in_list`; returns whether it is one."""
        words, level = self._words(block), self._styles.level(block)
        mark = self._mark(block) if words.strip() else ""
        if "\t" in words.strip() and not mark and level is None:
            self._tabbed.append(words.strip())
        else:
            self._end_rows()
        if self._tabbed:
            in_list = False
        elif level is not None:
            self.composer.heading(f"{mark} {words}" if mark.strip("-") else words, level)
            if not self.title and self._styles.name(block) == "title":
                self.title = one_line(words)
        elif words.strip():
            self.composer.block(f"{mark} {words}" if mark else words, close=bool(mark) and in_list)
            in_list = bool(mark)
        for box in _outer_boxes(block):
            self._add(box, depth)
            in_list = False
        self._package.graphics(self.composer, block, self._relations)
        return in_list

    def _mark(self, paragraph: Any) -> str:
        """Returns the mark before an item of a list or a heading with a number; empty for other paragraphs."""
        mark = self._styles.list_of(paragraph)
        if mark is not None:
            list_, level, style = mark
            return self._numbering.next(list_, self._numbering.level_of(list_, style) if level is None else level)
        return "-" if "list" in self._styles.name(paragraph) else ""

    def _texts(self, parent: Any) -> Iterator[str]:
        """Yields the words of each paragraph in `parent`, text boxes included."""
        for block in parent.iter(P):
            if not any(above.tag in GONE for above in block.iterancestors()):
                words = self._words(block)
                mark = self._mark(block) if words.strip() else ""
                yield f"{mark} {words}".strip()

    def _words(self, element: Any) -> str:
        """Returns the words of a paragraph: runs, links and insertions, without deletions and text boxes."""
        pieces: list[tuple[str, str]] = []  # (how it stands to the line, words)
        stack = [(element, "")]
        while stack:
            node, stands = stack.pop()
            tag = node.tag
            if tag == f"{W}t":
                pieces.append((stands, node.text or ""))
            elif tag in WORDS:
                pieces.append((stands, WORDS[tag]))
            elif tag == f"{W}sym":
                pieces.append((stands, self._symbol(node)))
            elif tag == f"{W}ffData":
                pieces.append((stands, _filled(node)))
            elif tag == f"{M}oMath":
                pieces.append((stands, equation(node)))
            elif tag not in GONE and tag != BOX and (node is element or tag != P):
                if tag == RUN:
                    if self._styles.is_set(node, "vanish"):
                        continue
                    if self._styles.is_set(node, "strike") or self._styles.is_set(node, "dstrike"):
                        self.composer.struck.append("".join(node.itertext(f"{W}t")))
                        continue
                    stands = value(node.find(f"{W}rPr"), "vertAlign")
                stack.extend((child, stands) for child in reversed(node))
        text = ""
        for stands, run in groupby(pieces, key=lambda piece: piece[0]):
            words = "".join(words for _, words in run)
            text += MARKS[stands](text[-1:], words) if stands in MARKS else words
        return text

    def _symbol(self, node: Any) -> str:
        font = node.get(f"{W}font", "")
        character = symbol(font, node.get(f"{W}char", ""))
        if character is None:
            self.lost.append(f"a sign of the font {font} in it can't be read")
        return character or ""

    def _table(self, table: Any, depth: int) -> bool:
        """Adds a table; one of one column, or with tables in it, only lays the page out: its blocks are text."""
        self._end_rows()
        rows = _rows(table)
        lays_out = max(map(len, rows), default=0) < 2 or any(
            cell is not None and cell.find(f".//{TBL}") is not None for row in rows for cell in row
        )
        if lays_out and depth < MAX_NESTED:
            for cell in {id(cell): cell for row in rows for cell in row if cell is not None}.values():
                self._add(cell, depth + 1)  # a merged one is met once for each place it takes
            return False
        texts: dict[int, str] = {}
        for cell in (cell for row in rows for cell in row if cell is not None):
            if id(cell) not in texts:
                texts[id(cell)] = " ".join(filter(None, self._texts(cell)))
        self.composer.table([["" if cell is None else texts[id(cell)] for cell in row] for row in rows])
        self._package.graphics(self.composer, table, self._relations)
        return False


class _Styles:
    """Styles by their ids; a style inherits from the one that it is based on."""

    def __init__(self, root: Any) -> None:
        self._styles = {} if root is None else {one.get(f"{W}styleId"): one for one in root.iter(f"{W}style")}
        kinds = {id_: (one.get(f"{W}default"), one.get(f"{W}type")) for id_, one in self._styles.items()}
        self._default = next((id_ for id_, own in kinds.items() if own == ("1", "paragraph")), "")

    def name(self, paragraph: Any) -> str:
        return value(self._styles.get(self._of(paragraph)), "name").casefold()

    def level(self, paragraph: Any) -> int | None:
        """Returns the level of a heading, 1 for the title, too; None for text. Styles of any name may have a level."""
        name = self.name(paragraph)
        if name == "title":
            return 1
        if name.startswith("heading ") and (level := figures(name[8:])):
            return level
        for element in self._chain(paragraph):
            if (level := figures(value(element.find(f"{W}pPr"), "outlineLvl"), -1)) >= 0:
                return level + 1 if level < 9 else None
        return None

    def list_of(self, paragraph: Any) -> tuple[str, int | None, str] | None:
        """Returns (the list, the level if given, the style that names the list); None outside of lists."""
        for element in self._chain(paragraph):
            numbering = element.find(f"{W}pPr/{W}numPr")
            if list_ := value(numbering, "numId"):
                level = figures(value(numbering, "ilvl"), -1)
                style = element.get(f"{W}styleId") or self._of(paragraph)
                return (list_, level if level >= 0 else None, style) if list_ != "0" else None
        return None

    def is_set(self, run: Any, name: str) -> bool:
        """Returns whether a run has a property by itself or by its style."""
        properties = run.find(f"{W}rPr")
        while properties is not None:
            switch = properties.find(f"{W}{name}")
            if switch is not None:
                return is_on(switch, f"{W}val")
            style = self._styles.get(value(properties, "rStyle"))
            properties = style.find(f"{W}rPr") if style is not None else None
        return False

    def _of(self, paragraph: Any) -> str:
        return value(paragraph.find(f"{W}pPr"), "pStyle") or self._default

    def _chain(self, paragraph: Any) -> Iterator[Any]:
        yield paragraph
        path: set[str] = set()
        id_ = self._of(paragraph)
        while id_ in self._styles and id_ not in path:
            path.add(id_)
            yield self._styles[id_]
            id_ = value(self._styles[id_], "basedOn")


def _within(parent: Any, *tags: str) -> Iterator[Any]:
    """Yields an element's paragraphs and tables, rows or cells, also those in content controls and insertions."""
    for child in parent:
        if child.tag in tags:
            yield child
        elif child.tag not in GONE:
            yield from _within(child, *tags)


def _rows(table: Any) -> list[list[Any]]:
    """Returns the cells by row; a cell that takes several places stands in each of them."""
    rows: list[list[Any]] = []
    for line in _within(table, TR):
        properties = line.find(f"{W}trPr")
        if properties is not None and any(properties.find(f"{W}{change}") is not None for change in ("del", "hidden")):
            continue
        before = figures(value(properties, "gridBefore"), 0, MAX_SPAN)
        row: list[Any] = [None] * before
        for cell in _within(line, TC):
            own = cell.find(f"{W}tcPr")
            merge = own.find(f"{W}vMerge") if own is not None else None
            goes_on = merge is not None and merge.get(f"{W}val", "continue") == "continue"
            above = rows[-1][len(row)] if goes_on and rows and len(row) < len(rows[-1]) else None
            row += [above if above is not None else cell] * figures(value(own, "gridSpan"), 1, MAX_SPAN)
        rows.append(row)
    return rows


def _outer_boxes(paragraph: Any) -> Iterator[Any]:
    for box in paragraph.iter(BOX):
        above = next(one for one in box.iterancestors() if one.tag in (P, BOX))
        if above is paragraph:
            yield box


def _filled(field: Any) -> str:
    """Returns the state of an old form's field that has no words of its own: a box to tick, a list to choose from."""
    box, choice = field.find(f"{W}checkBox"), field.find(f"{W}ddList")
    if box is not None:
        state = box.find(f"{W}checked")
        return "☒ " if is_on(state if state is not None else box.find(f"{W}default"), f"{W}val") else "☐ "
    entries = [entry.get(f"{W}val", "") for entry in choice.iterfind(f"{W}listEntry")] if choice is not None else []
    number = figures(value(choice, "result"))
    return entries[number] if number < len(entries) else "".join(entries[:1])
