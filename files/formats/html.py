"""HTML as plain text: the blocks of the main part, without menus, scripts and the like; the title from the head.

Parsed by selectolax' lexbor, which takes any soup a browser takes.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shardqa.files import encodings
from shardqa.files.composer import Composer, bars, figures, joined
from shardqa.files.exponents import lowered, raised
from shardqa.files.formats import depth, styles
from shardqa.files.formats.depth import tags
from shardqa.files.formats.faults import apart
from shardqa.files.source_file import MAX_MARKUP, Item, SourceFile

BOILERPLATE = (
    "script, style, noscript, template, nav, textarea, rt, rp, svg, iframe, object, canvas, dialog, [role=navigation], "
    "[role=banner], [role=contentinfo], [role=search], [role=dialog][aria-hidden=true], "
    ":is(a, b, em, i, small, span, sup)[aria-hidden=true]"  # signs; larger parts are panels that open
)
AROUND = {  # what stands around a page's text, unless it stands within it
    "header": ":is(article, section, main) header, header:has(h1)",
    "footer": ":is(article, section, main, blockquote, figure) footer",
    "aside": ":is(article, section, main, blockquote) aside, aside:is([class*=note], [class*=tip], [class*=warning])",
    "button": ":is(h1, h2, h3, h4, h5, h6, summary, dt, td, th, label) button, button[aria-controls], "
    "button[aria-expanded], button:has(+ [aria-hidden])",
}
FILLED = "select, input:is([readonly], [disabled]):is(:not([type]), [type=text])"  # fields that show one value
STRUCK = "del, s, strike, [style*=line-through]"
HALF = 0.5  # of a page's text: a part with more of it is no boilerplate
MOST_OF_HEAD = 1_000  # characters of what stands with a title above the main part
A_SENTENCE, A_PARAGRAPH = 4, 25  # words of a hidden part, and of all that is hidden, from which they say something
FORM = "form, input, button"  # what a hidden part that asks for something has
SHOWN = 60  # characters of what is hidden
MOST_LINKED = 0.5  # of what such a part says; more only leads on
HIDABLE = "[hidden], [style]"
INVISIBLE = re.compile(r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE)
HEADED = (  # panels that a script of the page opens: what names them stands right before
    ":is(h1, h2, h3, h4, h5, h6, dt, button, label, [role=button], [aria-expanded], [onclick], [class*=control], "
    "[class*=toggle], [class*=trigger], [class*=header], [class*=title], [class*=accordion], [class*=collaps], "
    ":has(> :is(h2, h3, h4, h5, h6, button, [role=button]))) + :is(div, dd, section, ul)"
)
NAVIGATION, ASIDES = "navigation", ("contents", "index", "licence")  # the latter are kept, and not searched
AROUND_TEXT = Path(__file__).with_name("boilerplate.tsv")  # what generators write there
WAYS = re.compile(
    r"(?i)\W*(?:prev(?:ious)?|next|up|home|top|back|contents|index|previous page|next page|table of contents)\W*"
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
NEVER_HIDDEN = "main, h1"  # what is never hidden for good
INLINE = tags(  # elements that do not end a line
    "a abbr acronym b bdi bdo big button cite code data del dfn em font i img ins kbd label mark q ruby rb rt rp s "
    "samp small span strike strong sub sup time tt u var wbr"
)
INNER = (  # whose headings head a note, not the rest of the page
    ":is(dd, li, blockquote, .note, .tip, .warning, .caution, .important, .sidebar, .example) "
    ":is(h1, h2, h3, h4, h5, h6)"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLANKS = re.compile(r"[ \t\n\r\f]+")  # what HTML collapses; a no-break space is kept
MAX_SPAN = 100  # columns or rows that one cell may stand for
MAX_COLUMNS = 1_000  # of a table that is told as sentences
BULLET = "- "
ASIDE_END, LIST_END = "/aside", "/list"  # no tags of HTML
NEAR = 20  # elements above a link among which its block is looked for


def read(source: SourceFile) -> Iterator[Item]:
    yield from of_text(source, source.read_all(MAX_MARKUP, text=True))


def of_text(source: SourceFile, content: bytes) -> Iterator[Item]:
    """Reads a page from bytes: UTF-8, or else the encoding that the page names."""
    composer = Composer()
    html, fault = encodings.mended(content, encodings.named(content))
    composer.lost += filter(None, [fault])
    yield from source.composed(composer, compose(html, composer))


def plain(html: str) -> tuple[str, str]:
    """Returns (title, text) of a page."""
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
    asides: list[str] = []
    opened: set[str] = set()
    with apart(composer.lost, "what its style sheets hide"):
        if not styles.hide(tree):
            composer.lost.append("its style sheets have more rules than are followed: text that they hide is read")
        opened = styles.opened(tree) if any(map(_is_hidden, tree.css(HIDABLE))) else set()  # most pages hide nothing
    for part in [*_lead(root, main), main]:
        composer.struck += _drop(part.css(STRUCK), part)
        with apart(composer.lost, "what is no text of it"):
            asides += _clean(part, opened)
        _Walk(composer, _asides(part), {node.mem_id for node in part.css(INNER)}).walk(part)
    with apart(composer.lost, "its questions and answers for search engines"):
        _add_answers(composer, tree)
    if sum(len(words.split()) for words in asides) >= A_PARAGRAPH:
        size = f"{sum(map(len, asides)):,} characters in {len(asides)} places"
        composer.lost.append(f"hidden, and nothing on the page opens it: {size}, as {asides[0][:SHOWN]!r}")
    return title


@functools.cache
def written(kind: str) -> str:
    """Returns the selectors of one kind of boilerplate."""
    rows = [line.split("\t") for line in AROUND_TEXT.read_text("ascii").splitlines()[1:]]
    return ", ".join(selector for of, _, selector in rows if of == kind)


def _add_answers(composer: Composer, tree: LexborHTMLParser) -> None:
    """Adds the answers that a page has for search engines (schema.org's FAQPage) and does not show."""
    shown = " ".join(composer.text.split())
    for script in tree.css("script[type='application/ld+json']"):
        for question in _questions(json.loads(script.text(deep=True) or "null")):
            answer = plain(str(question["acceptedAnswer"].get("text", "")))[1]
            if " ".join(answer.split()) not in shown:
                composer.entry(str(question.get("name", "")))
                composer.block(answer)
                composer.after_entries()


def _questions(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and value.get("@type") == "Question" and isinstance(value.get("acceptedAnswer"), dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _questions(below)


def _clean(main: LexborNode, opened: set[str]) -> list[str]:
    """Removes what is no text, puts in fields' values and marks of raised words; returns the hidden sentences."""
    for node in main.css(FILLED):
        options = [BLANKS.sub(" ", option.text(deep=True)).strip() for option in node.css("option[selected]")]
        node.replace_with(node.attributes.get("value") or ", ".join(options))
    for node in reversed(main.css(f"{BOILERPLATE}, {written(NAVIGATION)}")):
        if not _is_main(node, main) and not _is_page(node, main):
            node.decompose()
    _drop(_around(main), main)
    asides = _drop(_invisible(main, opened), main)
    _drop_ways(main)
    for node in main.css("img[alt]"):
        if len((alt := node.attributes.get("alt") or "").split()) >= A_SENTENCE:
            node.replace_with(f" {alt.rstrip('.')}. ")
    names = {node.text(deep=True): node for node in reversed(main.css("abbr[title]"))}  # where each is met first
    for words, node in names.items():
        node.replace_with(f"{words} ({node.attributes.get('title')})")
    for node in main.css("pre br"):
        node.replace_with("\n")
    for node in reversed(main.css(f"sup, sub, {NOTE}")):
        node.replace_with(_marked(node))
    main.merge_text_nodes()
    return [words for words in asides if len(words.split()) >= A_SENTENCE]


def _drop(nodes: Iterable[LexborNode], main: LexborNode) -> list[str]:
    """Removes nodes, also those within others; returns the words of each, but of menus and forms."""
    by_id = {node.mem_id: node for node in nodes if not _is_main(node, main)}
    outer = [node for node in by_id.values() if not any(above.mem_id in by_id for above in _above(node))]
    texts = [_words(node) for node in outer if _linked(node) <= MOST_LINKED and node.css_first(FORM) is None]
    for node in outer:
        node.decompose()
    return texts


def _title(tree: LexborHTMLParser) -> str:
    for selector in ("title", "h1"):
        node = tree.css_first(selector)
        words = BLANKS.sub(" ", node.text(deep=True)).strip() if node is not None else ""
        if words:
            return words
    return ""


def _main(root: LexborNode) -> LexborNode:
    """Returns the part marked as main where there is exactly one, else the whole body."""
    mains = root.css(MAIN)
    return mains[0] if len(mains) == 1 and (mains[0].text(deep=True) or "").strip() else root


def _is_page(node: LexborNode, main: LexborNode) -> bool:
    """Returns whether the node holds the page, as a header does that soup never closes."""
    is_most = len(node.text(deep=True) or "") > HALF * len(main.text(deep=True) or "")
    return node.css_first("main") is not None or (is_most and node.css_first("article") is not None)


def _lead(root: LexborNode, main: LexborNode) -> list[LexborNode]:
    """Returns the page's only h1 with the nodes that head the page beside it, where they stand outside of `main`."""
    heads = root.css("h1")
    inner = {node.mem_id for node in main.css("h1")}
    if len(heads) != 1 or heads[0].mem_id in inner or any(above.tag == "nav" for above in _above(heads[0])):
        return []
    around = {above.mem_id for above in _above(main)}
    header = next((above for above in _above(heads[0]) if above.tag == "header" and above.mem_id not in around), None)
    is_head = header is not None and len(header.text(deep=True) or "") <= MOST_OF_HEAD
    return [header if header is not None and is_head and _linked(header) <= MOST_LINKED else heads[0]]


def _is_main(node: LexborNode, main: LexborNode) -> bool:
    """Returns whether the node is `main` itself: selectors find it, too, and it must not drop itself."""
    return node.mem_id == main.mem_id


def _around(main: LexborNode) -> Iterator[LexborNode]:
    """Yields the parts that only lead on or belong to the whole site."""
    own = {node.mem_id for node in main.css("button, article header")}  # which may be one link
    for tag, within in AROUND.items():
        inner = {node.mem_id for node in main.css(within)}
        for node in main.css(tag):
            if node.mem_id not in inner or (node.mem_id not in own and _linked(node) > MOST_LINKED):
                yield node


def _linked(node: LexborNode) -> float:
    """Returns the share of links in the node's text."""
    links = sum(len((link.text(deep=True) or "").strip()) for link in node.css("a[href]"))
    return links / max(len((node.text(deep=True) or "").strip()), 1)


def _invisible(main: LexborNode, opened: set[str]) -> Iterator[LexborNode]:
    """Yields nodes that no reader sees; a panel counts as seen that a button, a link, a script or a heading opens."""
    heads = {node.mem_id for node in main.css(HEADED)}
    for node in filter(_is_hidden, main.css(HIDABLE)):
        names = {node.attributes.get("id") or "", *(node.attributes.get("class") or "").split()}
        if not (node.mem_id in heads or not opened.isdisjoint(names) or node.css_first(NEVER_HIDDEN) is not None):
            yield node


def _is_hidden(node: LexborNode) -> bool:
    """Returns whether the page begins with it hidden; something on it may show it later."""
    if "hidden" in node.attributes and node.attributes["hidden"] != "until-found":
        return True
    return INVISIBLE.search(node.attributes.get("style") or "") is not None


def _marked(node: LexborNode) -> str:
    """Returns the words of a sup or sub with their mark; a note's number in brackets."""
    words = BLANKS.sub(" ", node.text(deep=True) or "").strip()
    before = ((node.prev.text(deep=True) if node.prev is not None else "") or "")[-1:]
    if (node.tag == "a" or (node.tag == "sup" and node.css_first("a") is not None)) and words.isalnum():
        return f"[{words}]"
    return raised(before, words) if node.tag == "sup" else lowered(before, words)


def _drop_ways(main: LexborNode) -> None:
    """Removes ¶, links to the page before and after, and lines of nothing but links."""
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
    blocks = {at: node for at, (node, links, ways) in holders.items() if _only_leads(node, links, sum(ways))}
    _drop(blocks.values(), main)


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
    """Returns the block of `main` that a link stands in."""
    for node in itertools.islice(_above(link), NEAR):
        if _is_main(node, main):
            return None
        if node.tag in WAY_HOLDERS:
            return node
    return None


def _above(node: LexborNode) -> Iterator[LexborNode]:
    while node.parent is not None:
        node = node.parent
        yield node


def _asides(main: LexborNode) -> dict[int, str]:
    """Returns the asides (text that is kept and not searched), by their nodes' numbers."""
    kinds = {node.mem_id: kind for kind in ASIDES for node in main.css(written(kind))}
    inner: set[int] = set()
    for node in main.css("ul, ol, dl"):
        if node.mem_id in inner:
            continue
        inner.update(below.mem_id for below in node.css("ul, ol, dl"))
        links = [link for link in node.css("a[href]") if "://" not in (link.attributes["href"] or "")]
        if len(links) >= LINKS and node.mem_id not in kinds:
            length = sum(len((link.text(deep=True) or "").strip()) for link in links)
            if length >= SHARE * len("".join((node.text(deep=True) or "").split())):
                kinds[node.mem_id] = "contents"
    kinds.pop(main.mem_id, None)
    return kinds


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table; a cell that spans columns stands in each, but for one that is the whole row."""

    cells: list[str]
    heads: int  # cells that name others
    is_header: bool  # all of its cells do, but for an empty corner


class _Walk:
    """A walk over one tree, depth first; iterative, since soup may nest deeper than Python's stack."""

    def __init__(self, composer: Composer, asides: dict[int, str], inner: set[int]) -> None:
        self._composer = composer
        self._asides = asides
        self._inner = inner  # headings within an entry or a note
        self._lists = 0  # lists of terms that have not ended yet
        self._numbers: dict[int, int] = {}  # of the last item of each numbered list
        self._words: list[str] = []  # of the block that has not ended yet
        self._bullet = ""  # stands before the next block: it is a list item
        self._items = 0  # list items since the last other block: they follow each other without a blank line

    def walk(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode | None, str]] = [(root, "")]  # (None, tag) ends an element
        while stack:
            node, tag = stack.pop()
            with apart(self._composer.lost, f"a part of it (<{node.tag if node is not None else tag}>)"):
                if node is None:
                    self._end(tag)
                else:
                    stack += self._step(node)
        self._flush()

    def _step(self, node: LexborNode) -> list[tuple[LexborNode | None, str]]:
        """Takes one element; returns its end and what it holds, the first last."""
        tag = node.tag or ""
        later: list[tuple[LexborNode | None, str]] = []
        if tag == "-text":
            self._words.append(BLANKS.sub(" ", node.text(deep=False) or ""))
            return []
        if not tag or tag.startswith(("-", "_", "!")):
            return []
        if node.mem_id in self._asides:
            self._flush()
            self._items = 0
            self._composer.at(aside=self._asides[node.mem_id])
            later.append((None, ASIDE_END))
        elif tag == "table" and node.css_first(QUESTION) is not None:
            tag = "dl"
        elif tag == "table" and (rows := _data(node)) is not None:
            self._table(node, rows)
            return []
        elif tag == "tr" and node.css_matches(QUESTION):
            self._flush()
            self._composer.entry(_words(node), self._lists)
            return []
        elif tag == "pre":
            self._flush()
            self._block(node.text(deep=True) or "")
            return []
        self._begin(node, tag)
        ends_list = tag in ("ul", "ol") and (node.parent is None or node.parent.tag != "li")
        later.append((None, LIST_END if ends_list else "p" if node.mem_id in self._inner else tag))
        return later + [(child, "") for child in reversed(list(node.iter(include_text=True)))]

    def _numbered(self, item: LexborNode) -> str:
        """Returns the number and dot before an item of a numbered list; empty in other lists."""
        above = item.parent
        if above is None or above.tag != "ol" or (above.attributes.get("type") or "1") != "1":
            return ""
        own = item.attributes.get("value") or (
            above.attributes.get("start") if above.mem_id not in self._numbers else ""
        )
        number = figures(own, self._numbers.get(above.mem_id, 0) + 1)
        self._numbers[above.mem_id] = number
        return f"{number}. "

    def _begin(self, node: LexborNode, tag: str) -> None:
        if tag == "br":
            self._words.append("\n")
        elif tag not in INLINE:
            self._flush()
            if tag == "li":
                self._bullet = self._numbered(node) or BULLET
            self._lists += tag == "dl"

    def _end(self, tag: str) -> None:
        if tag == ASIDE_END:
            self._flush()
            self._items = 0
            self._composer.at(aside=None)
            return
        if tag == LIST_END:
            self._flush()
            self._items = 0
        elif tag in HEADINGS:
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
            self._block(text)

    def _block(self, text: str) -> None:
        if text.strip():
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
        elif rows[0].is_header and len(cells[0]) == 2 and not cells[0][1]:
            self._composer.rows(cells, None)
        elif len(rows) > 1 and rows[0].is_header:
            heads = next((n for n, row in enumerate(rows) if not row.is_header), 1)
            self._composer.rows(cells[heads:], joined(cells[:heads]))
        else:
            for n, row in enumerate(rows):
                name, values = row.cells[0].rstrip(":"), bars(row.cells[1:])
                if row.heads == 1 and name and values:
                    self._composer.pair(name, values, close=n > 0)
                else:
                    self._composer.block(bars(row.cells), close=n > 0)


def _tidy(text: str) -> str:
    """Removes blanks at line ends and all but one of blank lines in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip(" ") for line in text.split("\n"))).strip("\n")


def _data(table: LexborNode) -> list[_Row] | None:
    """Returns the rows of a table of data; None for one that only lays the page out."""
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
            words = _words(cell)
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


def _words(element: LexborNode) -> str:
    """Returns an element's words in one line, with a blank between its blocks."""
    pieces: list[str] = []
    stack: list[LexborNode | None] = [element]
    while stack:
        node = stack.pop()
        tag = node.tag or "" if node is not None else "br"
        if tag == "-text" and node is not None:
            pieces.append(node.text(deep=False) or "")
        elif tag == "br" or node is None:
            pieces.append(" ")
        else:
            edge = [] if tag in INLINE else [None]
            stack += [*edge, *reversed(list(node.iter(include_text=True))), *edge]
    return BLANKS.sub(" ", "".join(pieces)).strip()


def _fill(cells: list[str], hanging: dict[int, tuple[int, str]]) -> None:
    """Puts in the cells of rows above that reach into this one."""
    while (cell := hanging.pop(len(cells), None)) is not None:
        below, words = cell
        if below > 1:
            hanging[len(cells)] = (below - 1, words)
        cells.append(words)


def _span(cell: LexborNode, name: str) -> int:
    return max(figures((cell.attributes.get(name) or "").strip(), 1, MAX_SPAN), 1)
