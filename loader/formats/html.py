"""HTML as plain text: the blocks of the main part, without menus, scripts and the like; the title from the head.

Parsed by selectolax' lexbor, which takes any soup a browser takes.
"""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from shardqa.loader.opened import Item, Opened

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
BLANKS = re.compile(r"[ \t\n\r\f]+")  # what HTML collapses; a no-break space is kept


def read(opened: Opened) -> Iterator[Item]:
    title, text = plain(opened.text())
    yield opened.document(text, title)


def plain(html: str) -> tuple[str, str]:
    """(title, text): text blocks apart by a blank line, list items and table rows by a line end."""
    tree = LexborHTMLParser(html)
    title = _title(tree)
    root = tree.body
    if root is None:
        return title, ""
    main = _main(root)
    for node in main.css(BOILERPLATE):
        if not _encloses(node, main):
            node.decompose()
    pieces: list[str] = []
    _walk(main, pieces)
    return title, _tidy("".join(pieces))


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


def _walk(root: LexborNode, pieces: list[str]) -> None:
    """Depth first over text; iterative, since soup may nest deeper than Python's stack."""
    stack: list[tuple[LexborNode | None, str, bool]] = [(root, "", False)]
    while stack:
        node, closing, is_pre = stack.pop()
        if node is None:
            pieces.append(closing)
            continue
        tag = node.tag
        if tag == "-text":
            text = node.text(deep=False) or ""
            pieces.append(text if is_pre else BLANKS.sub(" ", text))
            continue
        if tag is None or tag.startswith(("-", "_", "!")):
            continue
        opening, closing = _marks(tag)
        pieces.append(opening)
        stack.append((None, closing, False))
        children = list(node.iter(include_text=True))
        stack += [(child, "", is_pre or tag in KEEPS_BLANKS) for child in reversed(children)]


def _marks(tag: str) -> tuple[str, str]:
    """What stands before and after an element's text."""
    if tag in INLINE:
        return "", ""
    if tag == "br":
        return "\n", ""
    if tag == "li":
        return "\n- ", "\n"
    if tag in ("td", "th"):
        return "", " | "
    if tag in ("tr", "dt", "dd"):
        return "\n", "\n"
    return "\n\n", "\n\n"


def _tidy(text: str) -> str:
    """Blanks at line ends go, row ends lose their last bar, more than one blank line becomes one."""
    lines = (line.strip(" ").removesuffix(" |").strip(" ") for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join("" if line in ("-", "|") else line for line in lines)).strip("\n")
