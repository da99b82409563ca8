"""XML that people write documents in: DocBook, Mallard; XHTML goes to the reader of HTML.

Entities that a file defines are put in within libxml2's bounds; no other file and no network is ever read for one.
"""

import html.entities
import re
from collections.abc import Callable, Iterator
from typing import Any

from lxml import etree

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line
from shardqa.loader.exponents import lowered, raised
from shardqa.loader.formats import html as pages
from shardqa.loader.formats.depth import tags
from shardqa.loader.source_file import MAX_MARKUP, Item, Lost, SourceFile, Textless

SECTIONS = tags(
    "set book part chapter appendix preface article section sect1 sect2 sect3 sect4 sect5 simplesect reference "
    "refentry refsect1 refsect2 refsect3 refsection refsynopsisdiv glossary glossdiv bibliography topic page"
)
BLOCKS = tags(
    "para simpara p title subtitle desc screen programlisting literallayout synopsis cmdsynopsis funcsynopsis listing "
    "term listitem item member refname refpurpose refnamediv question answer attribution glossterm glossdef "
    "bibliomixed seg td th entry tr row note tip warning caution important example figure informalexample blockquote "
    "itemizedlist orderedlist variablelist varlistentry simplelist segmentedlist glosslist glossentry procedure step "
    "substeps qandaset qandaentry list steps tree terms table informaltable code caption sidebar abstract legalnotice "
    "media"
)
DROPPED = tags(
    "bookinfo articleinfo chapterinfo sectioninfo sect1info sect2info sect3info refentryinfo appendixinfo prefaceinfo "
    "setinfo partinfo docinfo refmeta indexterm index toc lot comment remark revhistory authorgroup copyright credit "
    "license titleabbrev beginpage imageobject imagedata videoobject audioobject link-type revision setindex"
)
LISTS = tags("variablelist glosslist qandaset terms")
TERMS = tags("term glossterm question")
KEEPS_BLANKS = tags("screen programlisting literallayout synopsis code")
ITEMS = tags("listitem item step member")
MARKED: dict[str, Callable[[str, str], str]] = {  # words within a line, by the character before
    "superscript": raised,
    "subscript": lowered,
    "sup": raised,
    "sub": lowered,
    "footnote": lambda before, words: f" ({words})" if words else "",
}
ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,30});")
DEFINED = re.compile(rb"<!ENTITY\s+([\w.-]+)\s")
DECLARATION = re.compile(rb"\A\s*<\?xml[^>]*>")
HARMLESS = frozenset({"ERR_TAG_NOT_FINISHED", "ERR_TAG_NAME_MISMATCH"})  # no text is lost
BLANKS = re.compile(r"\s+")
JOINED = {"keycombo": "+", "keyseq": "+", "menuchoice": " → ", "guiseq": " → "}  # what stands between their parts
FAULTS = (etree.LxmlError, ValueError, LookupError)


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_MARKUP)
    root, fault = _root(content)
    name = _name(root)
    if name == "html":
        yield from pages.of_text(source, content)
        return
    if name not in SECTIONS | BLOCKS:
        if name in DROPPED or not "".join(root.itertext()).strip():
            yield Textless(source.label, "XML files without text")
            return
        raise BadDocument(
            f"XML whose root is <{name[:60]}>: neither DocBook, Mallard nor XHTML; convert it to HTML or plain text"
        )
    walk = _Walk(Composer())
    walk.add(root, 0)
    if not walk.composer.text and fault:
        raise BadDocument(f"not XML that can be read: {fault}")
    if not walk.composer.text:
        yield Textless(source.label, "XML files without text")  # a file that only brings others together
        return
    yield source.composed(walk.composer, walk.title)
    if fault:
        yield Lost(source.label, f"it is damaged, and text after that may be missing: {fault}")


def _root(content: bytes) -> tuple[Any, str]:
    """Returns (root, the place where the file stops to be XML; empty for none). Raises BadDocument."""
    own = set(DEFINED.findall(content))
    text = ENTITY.sub(lambda match: match[0] if match[1] in own else _unfolded(match[1]), content)
    root, fault = _parsed(text)
    if fault and b"<!DOCTYPE" not in text:  # a part of a file that names it as an entity: it may have many roots
        root, fault = _parsed(b"<section>%b</section>" % DECLARATION.sub(b"", text))
    if root is None:
        raise BadDocument(f"not XML that can be read: {fault or 'nothing in it'}")
    return root, fault


def _parsed(content: bytes) -> tuple[Any, str]:
    options = dict.fromkeys(("no_network", "remove_comments", "remove_pis", "recover"), True)
    parser = etree.XMLParser(resolve_entities="internal", load_dtd=False, **options)
    try:
        root = etree.fromstring(content, parser)
    except FAULTS as error:
        raise BadDocument(f"not XML that can be read: {str(error)[:160]}") from error
    faults = (one for one in parser.error_log if one.level_name == "FATAL" and one.type_name not in HARMLESS)
    return root, next((f"line {one.line}: {one.message[:160]}" for one in faults), "")


def _unfolded(name: bytes) -> bytes:
    """Returns the text for an entity that the file does not define: HTML's, as DocBook has them, else its name."""
    if name in (b"lt", b"gt", b"amp", b"quot", b"apos"):
        return b"&%b;" % name
    code = html.entities.name2codepoint.get(name.decode())
    return name if code is None else b"&#%d;" % code


def _name(node: Any) -> str:
    """Returns an element's name without namespace or undeclared prefix; empty for comments and the like."""
    return node.tag.rpartition("}")[2].rpartition(":")[2] if isinstance(node.tag, str) else ""


class _Walk:
    """A walk over the tree, depth first; libxml2 allows 256 levels."""

    def __init__(self, composer: Composer) -> None:
        self.composer = composer
        self.title = ""
        self._words: list[str] = []  # of the block that has not ended yet
        self._bullet = ""
        self._lists = 0  # lists of terms that have not ended yet
        self._follows = False  # the next block stands below its term or item before, without a blank line

    def add(self, node: Any, level: int) -> None:
        name = _name(node)
        if name in ("table", "informaltable"):
            self._table(node)
            return
        if name in SECTIONS:
            level += 1
        is_block = name in BLOCKS or name in SECTIONS
        if is_block:
            self._flush()
        self._lists += name in LISTS
        if name in ITEMS and _name(node.getparent()) not in ("varlistentry", "terms"):
            previous = node.getprevious()
            self._bullet, self._follows = "- ", previous is not None and _name(previous) in ITEMS
        keeps = name in KEEPS_BLANKS and (name != "code" or _name(node.getparent()) in SECTIONS | {"item", "example"})
        self._add_text(node.text, keeps)
        for number, child in enumerate(node):
            if number and name in JOINED:
                self._words.append(JOINED[name])
            self._child(child, level, name, keeps)
        if (name in TERMS or (name == "title" and _name(node.getparent()) == "item")) and self._lists:
            self.composer.entry("".join(self._words), self._lists)
            self._words, self._bullet, self._follows = [], "", True
        elif is_block:
            self._flush(keeps)
        if name in LISTS:
            self.composer.after_entries(self._lists)
            self._lists -= 1

    def _child(self, child: Any, level: int, parent: str, keeps: bool) -> None:
        name = _name(child)
        if name in MARKED:
            before = self._words[-1][-1:] if self._words else ""
            self._words.append(MARKED[name](before, one_line("".join(child.itertext()))))
        elif name == "title" and parent in SECTIONS:
            self._heading(child, level)
        elif name == "info":
            self._info(child, level, parent)
        elif name in DROPPED or (name.endswith("info") and parent in SECTIONS):
            for title in child.iterchildren("{*}title") if parent in SECTIONS else ():
                self._heading(title, level)
        elif name:
            self._inner(child, level, keeps)
        self._add_text(child.tail if parent not in JOINED else None, keeps)

    def _inner(self, child: Any, level: int, keeps: bool) -> None:
        if keeps:
            self._words.append("".join(child.itertext()))
        else:
            self.add(child, level)

    def _info(self, info: Any, level: int, parent: str) -> None:
        for child in info.iterchildren("{*}title", "{*}desc"):
            if (
                _name(child) == "title"
                and parent in SECTIONS
                and not any(_name(other) == "title" for other in info.getparent())
            ):
                self._heading(child, level)
            elif _name(child) == "desc":
                self.add(child, level)

    def _heading(self, title: Any, level: int) -> None:
        self._flush()
        words = one_line("".join(title.itertext()))
        self.title = self.title or words
        self.composer.heading(words, level)

    def _add_text(self, text: str | None, keeps: bool) -> None:
        if text:
            self._words.append(text if keeps else BLANKS.sub(" ", text))

    def _flush(self, keeps: bool = False) -> None:
        words = "".join(self._words)
        self._words = []
        text = words.strip("\n") if keeps else BLANKS.sub(" ", words).strip()
        if text.strip():
            self.composer.block(self._bullet + text, close=self._follows)
            self._bullet, self._follows = "", False

    def _table(self, node: Any) -> None:
        self._flush()
        for title in node.iterchildren("{*}title", "{*}caption"):
            self.composer.block(one_line("".join(title.itertext())))
        rows = [
            [one_line("".join(cell.itertext())) for cell in row if _name(cell) in ("entry", "td", "th")]
            for row in node.iter("{*}row", "{*}tr")
        ]
        lines = [row for row in rows if any(row)]
        has_header = len(lines) > 1 and next(node.iter("{*}thead", "{*}th"), None) is not None
        self.composer.rows(lines[1:] if has_header else lines, lines[0] if has_header else None)
