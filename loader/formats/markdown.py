"""Markdown as plain text: what a reader of the rendered page would read, without the marks.

Marks inside a sentence (`**bold**`, links) would otherwise stand in answers, so the text is stored without them and
offsets refer to that text. Headings, list items and table rows become lines; code is kept as it stands. The first
heading of level 1 at the top is the title and not part of the text.
"""

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shardqa.loader.opened import Item, Opened

PARSER = MarkdownIt("commonmark").enable("table")


def read(opened: Opened) -> Iterator[Item]:
    title, text = plain(_without_front_matter(opened.text()))
    yield opened.document(text, title)


def plain(markdown: str) -> tuple[str, str]:
    """(title, text); the title is empty where the page does not begin with a heading of level 1."""
    tokens = PARSER.parse(markdown)
    title = ""
    if len(tokens) >= 3 and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        title = " ".join(_inline(tokens[1]).split())
        tokens = tokens[3:]
    return title, _blocks(tokens)


def _blocks(tokens: list[Token]) -> str:
    """Paragraphs apart by a blank line; items of a tight list and rows of a table by a line end."""
    parts: list[str] = []
    row: list[str] = []
    marker = ""
    in_row = False
    for token in tokens:
        if token.type == "list_item_open":
            marker = f"{token.info}{token.markup} " if token.info else "- "
        elif token.type == "tr_open":
            row, in_row = [], True
        elif token.type == "tr_close":
            parts.append(" | ".join(row) + "\n")
            in_row = False
        elif token.type in ("bullet_list_close", "ordered_list_close", "table_close"):
            parts.append("\n")
        elif token.type == "inline" and in_row:
            row.append(_inline(token))
        elif token.type == "inline":
            parts.append(marker + _inline(token) + "\n")
            marker = ""
        elif token.type in ("fence", "code_block"):
            parts.append(token.content.rstrip("\n") + "\n\n")
        elif token.type in ("paragraph_close", "heading_close") and not token.hidden:
            parts.append("\n")
    return "".join(parts).strip("\n")


def _inline(token: Token) -> str:
    return "".join(_words(child) for child in token.children or [])


def _words(token: Token) -> str:
    if token.type in ("text", "code_inline"):
        return token.content
    if token.type in ("softbreak", "hardbreak"):
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
