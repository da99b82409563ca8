"""Markdown as plain text: what a reader of the rendered page would read, without the marks.

Marks inside a sentence (`**bold**`, links) would otherwise stand in answers, so the text is stored without them and
offsets refer to that text. Headings, list items and table rows become lines; code is kept as it stands; HTML is read as
HTML. The first heading of level 1 at the top is the title and not part of the text.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shardqa.loader.composer import Composer
from shardqa.loader.formats import html
from shardqa.loader.raised import lowered, raised
from shardqa.loader.source_file import Item, SourceFile

PARSER = MarkdownIt("commonmark").enable("table")
MARKS = {"<sup>": raised, "<sub>": lowered}
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    title = compose(_without_front_matter(source.text()), composer)
    yield source.composed(composer, title)


def plain(markdown: str) -> tuple[str, str]:
    """(title, text); the title is empty where the page does not begin with a heading of level 1."""
    composer = Composer()
    return compose(markdown, composer), composer.text


def compose(markdown: str, composer: Composer) -> str:
    """Adds a page's blocks to `composer`; returns its title."""
    tokens = PARSER.parse(markdown)
    title = ""
    if len(tokens) >= 3 and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        title = " ".join(_inline(tokens[1]).split())
        tokens = tokens[3:]
    _Blocks(composer).add(tokens)
    return title


class _Blocks:
    """Paragraphs apart by a blank line; items of a tight list and rows of a table by a line end."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._marker = ""  # of the list item that begins
        self._heading = 0  # level of the heading that is open
        self._follows = False  # the next paragraph stands in a tight list: no blank line before it
        self._rows: list[list[str]] = []
        self._in_row = False

    def add(self, tokens: list[Token]) -> None:
        for token in tokens:
            self._add(token)

    def _add(self, token: Token) -> None:
        match token.type:
            case "list_item_open":
                self._marker = f"{token.info}{token.markup} " if token.info else "- "
            case "heading_open":
                self._heading = int(token.tag[1:])
            case "table_open":
                self._rows = []
            case "tr_open":
                self._rows.append([])
                self._in_row = True
            case "tr_close":
                self._in_row = False
            case "table_close":
                self._composer.rows(self._rows[1:], self._rows[0] if any(self._rows[0]) else None)
                self._follows = False
            case "inline":
                self._words(_inline(token))
            case "fence" | "code_block":
                self._composer.block(token.content)
                self._follows = False
            case "html_block":
                html.compose(token.content, self._composer)
                self._follows = False
            case "paragraph_close":
                self._follows = token.hidden
            case "bullet_list_close" | "ordered_list_close":
                self._follows = False
                self._marker = ""

    def _words(self, text: str) -> None:
        if self._in_row:
            self._rows[-1].append(text)
        elif self._heading:
            self._composer.heading(text, self._heading)
            self._heading = 0
            self._follows = False
        else:
            self._composer.block(self._marker + text if text.strip() else "", close=self._follows)
            self._marker = ""


def _inline(token: Token) -> str:
    text = ""
    mark, begin = None, 0  # of the sup or sub that is open
    for child in token.children or []:
        tag = child.content.strip().lower() if child.type == "html_inline" else ""
        if tag in MARKS:
            mark, begin = MARKS[tag], len(text)
        elif tag in ("</sup>", "</sub>") and mark is not None:
            text = text[:begin] + mark(text[begin - 1 : begin] if begin else "", text[begin:])
            mark = None
        else:
            text += _words(child)
    return text


def _words(token: Token) -> str:
    if token.type in ("text", "code_inline"):
        return token.content
    if token.type in ("softbreak", "hardbreak") or LINE_BREAK.fullmatch(token.content):
        return "\n"
    if token.type == "image":
        return _inline(token)  # its alternative text
    return ""


def _without_front_matter(markdown: str) -> str:
    """Drops the settings between `---` lines that site generators put at the top."""
    if not markdown.startswith("---\n"):
        return markdown
    _, end, rest = markdown[4:].partition("\n---\n")
    return rest if end else markdown
