"""XML that people write documents in: DocBook and Mallard, read as the HTML that they mean, and XHTML.

Entities that a file defines are put in within libxml2's bounds; no other file and no network is ever read for one.
"""

import html.entities
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from lxml import etree

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, one_line
from shardqa.files.formats import html as pages
from shardqa.files.formats.depth import tags
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import MAX_MARKUP, Item, Lost, SourceFile, Textless

SECTIONS = tags(
    "set book part chapter appendix preface article section sect1 sect2 sect3 sect4 sect5 simplesect reference "
    "refentry refsect1 refsect2 refsect3 refsection refsynopsisdiv glossary glossdiv bibliography topic page"
)
DROPPED = tags(
    "bookinfo articleinfo chapterinfo sectioninfo sect1info sect2info sect3info refentryinfo appendixinfo prefaceinfo "
    "setinfo partinfo docinfo refmeta indexterm index toc lot comment remark revhistory authorgroup copyright credit "
    "license titleabbrev beginpage imageobject imagedata videoobject audioobject link-type revision setindex"
)
TAGS = {  # of HTML; an element without one is a part of a line
    name: tag
    for tag, names in re.findall(
        r"(\w+): ([^;]+)",
        "div: div para simpara p title subtitle desc cmdsynopsis funcsynopsis refname refpurpose refnamediv answer seg "
        "attribution glossdef bibliomixed note tip warning caution important example figure informalexample listing "
        "blockquote segmentedlist varlistentry glossentry qandaentry tree sidebar abstract legalnotice media; "
        "pre: screen programlisting literallayout synopsis; ul: itemizedlist simplelist list procedure steps substeps; "
        "ol: orderedlist; li: listitem item member step; dl: variablelist glosslist qandaset terms; dt: term glossterm "
        "question; table: table informaltable; tr: row tr; td: entry td; sup: superscript sup; sub: subscript sub; "
        "th: th; thead: thead; caption: caption",
    )
    for name in names.split()
} | dict.fromkeys(SECTIONS, "div")
INNER = {("varlistentry", "listitem"): "dd", ("terms", "item"): "div"} | {
    **{(above, "code"): "pre" for above in (*SECTIONS, "item", "example", "listing")},
    **dict.fromkeys((("table", "title"), ("informaltable", "title")), "caption"),
}
"""Tags of elements that mean something else within some others."""
ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,30});")
DEFINED = re.compile(rb"<!ENTITY\s+([\w.-]+)\s")
DECLARATION = re.compile(rb"\A\s*<\?xml[^>]*>")
HARMLESS = frozenset({"ERR_TAG_NOT_FINISHED", "ERR_TAG_NAME_MISMATCH"})  # no text is lost
JOINED = {"keycombo": "+", "keyseq": "+", "menuchoice": " → ", "guiseq": " → "}  # what stands between their parts


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_MARKUP)
    root, fault = _root(content)
    name = _name(root)
    if name == "html":
        yield from pages.of_text(source, content)
        return
    if name not in TAGS:
        if name in DROPPED or not "".join(root.itertext()).strip():
            yield Textless(source.label, "XML files without text")
            return
        raise BadDocument(
            f"XML whose root is <{name[:60]}>: neither DocBook, Mallard nor XHTML; convert it to HTML or plain text"
        )
    composer = Composer()
    title = pages.compose(_html(root, 0), composer)
    if not composer.text and fault:
        raise BadDocument(f"not XML that can be read: {fault}")
    if not composer.text:
        yield Textless(source.label, "XML files without text")  # a file that only brings others together
        return
    yield from source.composed(composer, title)
    if fault:
        yield Lost(source.label, f"it is damaged, and text after that may be missing: {fault}")


def _root(content: bytes) -> tuple[Any, str]:
    """Returns (root, the place where the file stops to be XML; empty for none). Raises BadDocument."""
    own = set(DEFINED.findall(content))
    text = ENTITY.sub(lambda match: match[0] if match[1] in own else _unfolded(match[1]), content)
    root, fault = _parsed(text)
    if fault and b"<!DOCTYPE" not in text:  # a part of a file that names it as an entity: it may have many roots
        root, fault = _parsed(b"<div>%b</div>" % DECLARATION.sub(b"", text))
    if root is None:
        raise BadDocument(f"not XML that can be read: {fault or 'nothing in it'}")
    return root, fault


def _parsed(content: bytes) -> tuple[Any, str]:
    options = dict.fromkeys(("no_network", "remove_comments", "remove_pis", "recover"), True)
    parser = etree.XMLParser(resolve_entities="internal", load_dtd=False, **options)
    with readable("XML"):
        root = etree.fromstring(content, parser)
    faults = (one for one in parser.error_log if one.level_name == "FATAL" and one.type_name not in HARMLESS)
    return root, next((f"line {one.line}: {one.message[:160]}" for one in faults), "")


def _unfolded(name: bytes) -> bytes:
    """Returns the text for an entity that the file does not define: HTML's, as DocBook has them, else its name."""
    if name in (b"lt", b"gt", b"amp", b"quot", b"apos"):
        return b"&%b;" % name
    code = html.entities.name2codepoint.get(name.decode())
    return name if code is None else b"&#%d;" % code


def _name(node: Any) -> str:
    """Returns an element's name without namespace or undeclared prefix; empty for comments and for nothing."""
    tag = getattr(node, "tag", "")
    return tag.rpartition("}")[2].rpartition(":")[2] if isinstance(tag, str) else ""


def _html(node: Any, level: int) -> str:
    """Returns an element as HTML; sections of that level have headings of the next. libxml2 allows 256 levels."""
    name, parent = _name(node), node.getparent()
    above = _name(parent)
    if not name:
        return ""
    if name == "title" and above in SECTIONS:
        return _tagged(f"h{min(level, 6)}", _line(node))
    if name in DROPPED or (name.endswith("info") and above in SECTIONS):
        has_title = any(_name(other) == "title" for other in parent) or above not in SECTIONS
        titles = () if has_title else node.iterchildren("{*}title")
        return "".join(_tagged(f"h{min(level, 6)}", _line(title)) for title in titles) + "".join(
            _html(child, level) for child in node.iterchildren("{*}desc")
        )
    tag = INNER.get((above, name), TAGS.get(name, ""))
    if tag == "dt" or (name == "title" and above == "item" and _name(parent.getparent()) == "terms"):
        return _tagged("dt", _line(node))
    if name == "footnote":
        return f" ({_line(node)})"
    if tag == "pre":
        return _tagged(tag, escape("".join(node.itertext())))
    if tag == "table" and next(node.iter("{*}thead", "{*}th"), None) is None:
        for row in node.iter("{*}row", "{*}tr"):
            if len(row) == 2:  # a name and its value
                row[0].tag = "th"
    return _tagged(tag, _inner(node, level + (name in SECTIONS), JOINED.get(name, "")))


def _inner(node: Any, level: int, between: str = "") -> str:
    children = [piece for child in node for piece in (_html(child, level), escape(child.tail or ""))]
    pieces = [escape(node.text or ""), *children]
    return between.join(piece.strip() for piece in pieces if piece.strip()) if between else "".join(pieces)


def _line(node: Any) -> str:
    return escape(one_line("".join(node.itertext())))


def _tagged(tag: str, words: str) -> str:
    return f"<{tag}>{words}</{tag}>" if tag else words
