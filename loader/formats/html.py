"""HTML as plain text: the blocks of the main part, without menus, scripts and the like; the title from the head.

Parsed by selectolax' lexbor, which takes any soup a browser takes.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shardqa.loader import encodings
from shardqa.loader.composer import Composer, bars
from shardqa.loader.formats import depth
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import MAX_MARKUP, Item, SourceFile

BOILERPLATE = (
    "script, style, noscript, template, nav, header, footer, aside, form, button, select, svg, iframe, object, "
    "canvas, dialog, [hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
NAVIGATION = (  # of what Sphinx, DocBook, Texinfo, Doxygen and others write around a page's text
    ".sphinxsidebar, .related, .navheader, .navfooter, .nav-panel, .navpath, .navigation, .breadcrumb, .breadcrumbs, "
    ".headerlink, .footer, #footer, #banner, .skip-link, .prev-next-area, .prevnext, .rst-footer-buttons, .docnav, "
    "#searchbox, .search-form, .nosearch"
)
ASIDES = {
    "contents": ".toc, .toctree-wrapper, .table-of-contents, .contents, .shortcontents, .element-contents, #toc, "
    "#table-of-contents, [role=doc-toc]",
    "index": ".indextable, .genindextable, .modindextable, .genindex-jumpbox, .indexdiv, [class^=index-], "
    "[role=doc-index]",
    "licence": ".legalnotice",
}
WAYS = re.compile(
    r"\W*(?:prev(?:ious)?|next|up|home|top|back|contents|index|previous page|next page|table of contents)\W*",
    re.IGNORECASE,
)
WAY_RELS = frozenset({"prev", "previous", "next", "up", "start", "index", "contents", "alternate"})
WAY_HOLDERS = frozenset({"p", "div", "table", "ul", "ol", "center", "body"})
MOST_OF_WAYS = 400  # characters of a block that only leads to other pages
BETWEEN = re.compile(r"\s*(?:[|›»·•>]\s*){2,}")  # the links of a menu or a trail of pages
NOTE = "a[role=doc-noteref], a.footnote-ref"  # the number of one
QUESTION = "tr.question"  # DocBook's: what follows answers it
PILCROWS = frozenset("¶#§🔗⚓↩")
LINKS = 5  # links in a list from which it is a table of contents
SHARE = 0.9  # of its text that is links
MAIN = "main, article, [role=main]"
INLINE = frozenset(  # elements that do not end a line
    re.findall(
        r"\S+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q ruby rb rt rp s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
INNER = (  # whose headings head a note, not the rest of the page
    ":is(dd, li, blockquote, .note, .tip, .warning, .caution, .important, .sidebar, .example) "
    ":is(h1, h2, h3, h4, h5, h6)"
)
KEEPS_BLANKS = frozenset({"pre", "textarea"})
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLANKS = re.compile(r"[ \t\n\r\f]+")  # what HTML collapses; a no-break space is kept
MAX_SPAN = 100  # columns or rows that one cell may stand for
MAX_COLUMNS = 1_000  # of a table that is told as sentences
BULLET = "- "
ASIDE_END = "/aside"  # no tag of HTML
NEAR = 20  # elements above a link among which its block is looked for


def read(source: SourceFile) -> Iterator[Item]:
    yield from of_text(source, source.read_all(MAX_MARKUP, text=True))


def of_text(source: SourceFile, content: bytes) -> Iterator[Item]:
    """A page of these bytes; one that is no UTF-8 is in the encoding that it names itself."""
    composer = Composer()
    title = compose(encodings.decoded(content, encodings.named(content)), composer)
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
    for node in reversed(main.css(f"{BOILERPLATE}, {NAVIGATION}")):
        if not _encloses(node, main):
            node.decompose()
    _drop_ways(main)
    for node in reversed(main.css(f"sup, sub, {NOTE}")):
        node.replace_with(_marked(node))
    main.merge_text_nodes()
    _Walk(composer, _asides(main), {node.mem_id for node in main.css(INNER)}).walk(main)
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


def _marked(node: LexborNode) -> str:
    """The words of a sup or sub with their mark; the number of a note in brackets."""
    words = BLANKS.sub(" ", node.text(deep=True) or "").strip()
    before = ((node.prev.text(deep=True) if node.prev is not None else "") or "")[-1:]
    if (node.tag == "a" or (node.tag == "sup" and node.css_first("a") is not None)) and words.isalnum():
        return f"[{words}]"
    return raised(before, words) if node.tag == "sup" else lowered(before, words)


def _drop_ways(main: LexborNode) -> None:
    """Removes ¶, what leads to the page before and after, and lines of nothing but links."""
    holders: dict[int, tuple[LexborNode, list[str], list[bool]]] = {}  # its links' words, and whether they lead on
    for link in main.css("a[href]"):
        words = (link.text(deep=True) or "").strip(" \n\ufe0e")
        if words in PILCROWS and (link.attributes["href"] or "").startswith("#"):
            link.decompose()
        elif (holder := _holder(link, main)) is not None:
            _, links, ways = holders.setdefault(holder.mem_id, (holder, [], []))
            links.append(words)
            rels = (link.attributes.get("rel") or "").split()
            ways.append(WAYS.fullmatch(words) is not None or not WAY_RELS.isdisjoint(rels))
    dropped = {at: node for at, (node, links, ways) in holders.items() if _only_leads(node, links, sum(ways))}
    for node in [node for node in dropped.values() if not any(above.mem_id in dropped for above in _above(node))]:
        node.decompose()


def _only_leads(node: LexborNode, links: list[str], ways: int) -> bool:
    text = node.text(deep=True) or ""
    if len(text) > MOST_OF_WAYS:
        return False
    if ways > 1:
        return True
    for words in links:
        text = text.replace(words, "", 1)
    return BETWEEN.fullmatch(text) is not None


def _holder(link: LexborNode, main: LexborNode) -> LexborNode | None:
    """The block of `main` that a link stands in."""
    for node in itertools.islice(_above(link), NEAR):
        if _encloses(node, main):
            return None
        if node.tag in WAY_HOLDERS:
            return node
    return None


def _above(node: LexborNode) -> Iterator[LexborNode]:
    while node.parent is not None:
        node = node.parent
        yield node


def _asides(main: LexborNode) -> dict[int, str]:
    """Parts that are kept and not searched, by their nodes' numbers."""
    kinds = {node.mem_id: kind for kind, selector in ASIDES.items() for node in main.css(selector)}
    inner: set[int] = set()
    for node in main.css("ul, ol, dl"):
        if node.mem_id in inner:
            continue
        inner.update(below.mem_id for below in node.css("ul, ol, dl"))
        links = [link for link in node.css("a[href]") if "://" not in (link.attributes["href"] or "")]
        if len(links) >= LINKS and node.mem_id not in kinds:
            linked = sum(len((link.text(deep=True) or "").strip()) for link in links)
            if linked >= SHARE * len("".join((node.text(deep=True) or "").split())):
                kinds[node.mem_id] = "contents"
    kinds.pop(main.mem_id, None)
    return kinds


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table; cells that span columns stand once for each, but for one that is the whole row."""

    cells: list[str]
    heads: int  # cells that name others
    is_header: bool  # all of its cells do, but for an empty corner


class _Walk:
    """Depth first over one tree; iterative, since soup may nest deeper than Python's stack."""

    def __init__(self, composer: Composer, asides: dict[int, str], inner: set[int]) -> None:
        self._composer = composer
        self._asides = asides
        self._inner = inner  # headings within an entry or a note
        self._lists = 0  # lists of terms that have not ended yet
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
            if node.mem_id in self._asides:
                self._flush()
                self._items = 0
                self._composer.at(aside=self._asides[node.mem_id])
                stack.append((None, ASIDE_END, False))
            elif tag == "table" and node.css_first(QUESTION) is not None:
                tag = "dl"
            elif tag == "table" and (rows := _data(node)) is not None:
                self._table(node, rows)
                continue
            elif tag == "tr" and node.css_matches(QUESTION):
                self._flush()
                self._composer.entry(_tidy(BLANKS.sub(" ", node.text(deep=True, separator=" "))), self._lists)
                continue
            self._begin(tag)
            stack.append((None, "p" if node.mem_id in self._inner else tag, False))
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
            self._lists += tag == "dl"

    def _end(self, tag: str) -> None:
        if tag == ASIDE_END:
            self._flush()
            self._items = 0
            self._composer.at(aside=None)
            return
        if tag in HEADINGS:
            words = "".join(self._words)
            self._words = []
            self._items = 0
            self._composer.heading(words, HEADINGS[tag])
        elif tag == "dt" and self._lists:
            words = _tidy("".join(self._words))
            self._words, self._items, self._bullet = [], 0, ""
            self._composer.entry(words, self._lists)
        elif tag not in INLINE and tag != "br":
            self._flush()
            if tag == "dl":
                self._composer.after_entries(self._lists)
                self._lists -= 1

    def _flush(self) -> None:
        text = _tidy("".join(self._words))
        self._words = []
        if text:
            self._composer.block(self._bullet + text, close=bool(self._bullet) and self._items > 0)
            self._items = self._items + 1 if self._bullet else 0
            self._bullet = ""

    def _table(self, node: LexborNode, rows: list[_Row]) -> None:
        self._flush()
        self._items = 0
        caption = node.css_first("caption")
        if caption is not None:
            self._composer.block(_tidy(BLANKS.sub(" ", caption.text(deep=True))))
        has_heads = any(row.heads for row in rows)
        while len(rows) > 1 and rows[0].heads == 1 and len(rows[0].cells) == 1:  # a title over all columns
            self._composer.block(rows.pop(0).cells[0])
        cells = [row.cells for row in rows]
        if not has_heads:
            self._composer.table(cells)
        elif len(rows) > 1 and rows[0].is_header:
            self._composer.rows(cells[1:], cells[0])
        else:
            for n, row in enumerate(rows):
                name, values = row.cells[0].rstrip(":"), bars(row.cells[1:])
                is_pair = row.heads == 1 and name and values
                self._composer.block(f"{name}: {values}" if is_pair else bars(row.cells), close=n > 0)


def _tidy(text: str) -> str:
    """Blanks at line ends go, more than one blank line becomes one."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip(" ") for line in text.split("\n"))).strip("\n")


def _data(table: LexborNode) -> list[_Row] | None:
    """The rows of a table of data; None for one that only lays a page out."""
    if table.css_first("table table") is not None:
        return None
    rows: list[_Row] = []
    hanging: dict[int, tuple[int, str]] = {}  # column -> (rows left, text) of a cell that goes on below
    for line in table.css("tr"):
        cells: list[str] = []
        own = [child for child in line.iter() if child.tag in ("td", "th")]
        for cell in own:
            _fill(cells, hanging)
            if len(cells) >= MAX_COLUMNS:
                break
            words = BLANKS.sub(" ", cell.text(deep=True, separator=" ")).strip()
            below = _span(cell, "rowspan") - 1
            columns = 1 if len(own) == 1 else _span(cell, "colspan")
            for column in range(len(cells), min(len(cells) + columns, MAX_COLUMNS)):
                if below > 0:
                    hanging[column] = (below, words)
                cells.append(words)
        _fill(cells, hanging)
        if any(cells):
            is_head = line.parent is not None and line.parent.tag == "thead"
            heads = sum(is_head or cell.tag == "th" for cell in own)
            has_corner = bool(own) and own[0].tag == "td" and not cells[0]
            rows.append(_Row(cells[:MAX_COLUMNS], heads, heads > 1 and heads >= len(own) - has_corner))
    return rows if rows and max(len(row.cells) for row in rows) > 1 else None


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
