"""The depth of HTML by its tags: at least as deep as the parser makes it, and little more for people's pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from shardqa.errors import BadDocument
from shardqa.files.formats import depth

NAMES = ["div", "b", "ul", "li", "table", "tr", "td", "p", "h1", "h2", "a", "span", "dl", "dd", "br", "caption", "svg"]
ALLOWED = 2  # html and body, which the tags need not have


def deepest(html: str) -> int:
    most, todo = 0, [(LexborHTMLParser(html).root, 0)]
    while todo:
        node, level = todo.pop()
        most = max(most, level)
        if node is not None:
            todo += [(child, level + 1) for child in node.iter()]
    return most


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=60))
def test_what_the_parser_makes_deep_is_counted_as_deep(tags: list[tuple[bool, str]]) -> None:
    html = "".join(f"<{'/' if end else ''}{name}>" for end, name in tags)
    assert deepest(html) <= 4 * (counted(html) + ALLOWED) + 16


def counted(html: str) -> int:
    """The least bound that lets it pass."""
    low, high = 0, 200
    while low < high:
        middle = (low + high) // 2
        depth.MAX_DEPTH, usual = middle, depth.MAX_DEPTH
        try:
            depth.check(html)
            high = middle
        except BadDocument:
            low = middle + 1
        finally:
            depth.MAX_DEPTH = usual
    return low


@pytest.mark.parametrize(
    "page",
    [
        "<p>one<p>two" * 20_000,
        "<ul>" + "<li>one" * 20_000,
        "<table>" + "<tr><td>a<td>b" * 20_000,
        "<dl>" + "<dt>a<dd>b" * 20_000,
        "<h1>a</h1><br><img src=a>" * 20_000,
        "<select>" + "<option>a" * 20_000,
        "<div><b>x</b></div>" * 20_000,
    ],
)
def test_pages_that_leave_end_tags_out_are_not_deep(page: str) -> None:
    depth.check(page)
