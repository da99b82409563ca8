"""Markdown as plain text: what a reader of the rendered page would read, without the marks.

Marks inside a sentence (`**bold**`, links) would otherwise stand in answers, so the text is stored without them and
offsets refer to that text: the page is rendered and read as HTML. The first heading of level 1 at the top is the title
and not part of the text.
"""

import itertools
import re
from collections.abc import Iterator
from html import escape

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from shardqa.files.composer import Composer
from shardqa.files.formats import html
from shardqa.files.source_file import Item, SourceFile

PARSER = MarkdownIt("commonmark", {"breaks": True}).enable(["table", "strikethrough"])
TERM = re.compile(r"(?!:)(?:[^\n`]|`[^\n`]*`)+(?=\n:[ \t])")  # above what explains it: `: …`, as in PHP Markdown Extra
PARSER.add_render_rule("image", lambda self, tokens, n, options, env: escape(tokens[n].content))  # alternative text
FRONT = re.compile(r"(?s)(---|\+\+\+)[ \t]*\n(?=\s*[\w-]+[ \t]*[:=])(.*?\n)\1[ \t]*(?:\n|\Z)")  # 2: the settings
SETTING = re.compile(r"^(title|authors?|date)[ \t]*[:=][ \t]*(\S.*|(?:\n[ \t]*-[ \t].*)+)", re.MULTILINE | re.I)
COMMENT = re.compile(r"%%(?!%)[^%]*+(?:%(?!%)[^%]*+)*%%")  # of Obsidian
NESTED = re.compile(r"(?!<)(?:[^\x00-\x20\x7f()\\]*\(){33}")  # no address: the library finds it character by character
ITEM = re.compile(r",[ \t]*|\n?[ \t]*-[ \t]+")


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    metadata, text = _front_matter(source.text())
    for n, (name, value) in enumerate((name, value) for name, value in metadata.items() if name != "title"):
        composer.pair(name.capitalize(), value, close=n > 0)
    title = compose(COMMENT.sub("", text), composer)
    yield from source.composed(composer, title or metadata.get("title", ""), metadata=metadata)


def plain(markdown: str) -> tuple[str, str]:
    """Returns (title, text); the title is empty where the page does not begin with a heading of level 1."""
    composer = Composer()
    return compose(markdown, composer), composer.text


def compose(markdown: str, composer: Composer, has_title: bool = True) -> str:
    """Adds a page's blocks to `composer`; returns its title, which is left out of the text if `has_title`."""
    tokens = PARSER.parse(markdown)
    title = ""
    if has_title and len(tokens) >= 3 and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        _, title = html.plain(f"<p>{_rendered(tokens[1:2])}")
        tokens = tokens[3:]
    _as_cells(tokens)
    html.compose(_rendered(tokens), composer)
    return title


def _as_terms(state: StateCore) -> None:
    """Turns a paragraph of a term and what explains it into a list of HTML."""
    for before, token, after in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if before.type == "paragraph_open" and not before.hidden and TERM.match(token.content):
            before.tag = after.tag = "dl"
            token.content = re.sub(r"\n:[ \t]+", "<dd>", f"<dt>{token.content}")


PARSER.core.ruler.before("inline", "terms", _as_terms)
PARSER.helpers.parseLinkDestination = lambda text, at, end: parseLinkDestination(  # type: ignore[attr-defined]
    text, end if NESTED.match(text, at, end) else at, end
)


def _rendered(tokens: list[Token]) -> str:
    return str(PARSER.renderer.render(tokens, PARSER.options, {}))


def _as_cells(tokens: list[Token]) -> None:
    """Turns a table's head into a plain row if all its cells are filled: Markdown demands a head of every table."""
    for start in [n for n, token in enumerate(tokens) if token.type == "thead_open"]:
        head = list(itertools.takewhile(lambda token: token.type != "tbody_open", tokens[start:]))
        if all(token.content for token in head if token.type == "inline"):
            for token in head:
                token.tag = {"thead": "tbody", "th": "td"}.get(token.tag, token.tag)


def _front_matter(markdown: str) -> tuple[dict[str, str], str]:
    """Returns (title, author and date; the page) where settings stand between `---` or `+++` lines at the top."""
    if (match := FRONT.match(markdown)) is None:
        return {}, markdown
    settings = {name.lower(): _setting(value) for name, value in SETTING.findall(match[2])}
    return {name: value for name, value in settings.items() if value}, markdown[match.end() :]


def _setting(value: str) -> str:
    """Returns a value without quotes, a list as its items with commas."""
    every = (item.strip(" \t\"'") for item in ITEM.split(value.strip().strip("[]")))
    return ", ".join(item for item in every if item) if value.lstrip()[:1] in "[-" else value.strip().strip("\"'")
