"""Parts of pages around their text: dropped where it only leads on, marked where it is contents or an index."""

import re

import pytest

from shardqa.files.composer import Composer
from shardqa.files.formats import html

SPHINX = (
    '<div class="related"><a href="a">next</a></div><h1>Boats<a class="headerlink" href="#b">¶</a></h1><p>Text.</p>'
)
TABLE = '<h1>Boats</h1><p>Text.</p><table><tr><td><a href="a">Prev</a><td><a href="c">Next</a></table>'
PLAIN = '<h1>Boats</h1><p>Text.</p><p>[<a href="a.html">Previous</a> | <a href="c.html">Next</a>]</p>'
TRAIL = (
    '<p><a href="/">Isle</a> &gt; <a href="/b">Boats</a> &gt; <a href="/b/f">Fleet</a></p><h1>Boats</h1><p>Text.</p>'
)
TONGUES = (
    '<h1>Boats</h1><p>In: <a rel="alternate" href="f">fran</a> <a rel="alternate" href="t">turk</a></p><p>Text.</p>'
)
NESTED = (
    '<div><p><a href="a">Prev</a> <a href="b">Next</a></p><a href="a">Up</a><a href="b">Home</a></div><p>Boats<p>Text.'
)
ALL_OF_IT = (
    '<div><main><h1>Boats</h1><p>Text.</p><a href="#a">¶</a></main><a href="a">Prev</a> <a href="b">Next</a></div>'
)


def part(selector: str) -> str:
    """An element that a row's selector takes, with words in it."""
    tag, mark, name = re.fullmatch(r"(\w*)([.#]|\[\w+\^?=)([\w-]+)\]?", selector).groups()  # type: ignore[union-attr]
    attribute = {".": "class", "#": "id"}.get(mark) or mark.strip("[^=")
    words = "<tr><td>Boats ahead" if tag == "table" else "Boats ahead"
    return f'<{tag or "div"} {attribute}="{name}">{words}</{tag or "div"}>'


@pytest.mark.parametrize("row", html.AROUND_TEXT.read_text("ascii").splitlines()[1:])
def test_what_a_generator_writes_around_a_text_is_dropped_or_an_aside(row: str) -> None:
    kind, _, selector = row.split("\t")
    composer = Composer()
    html.compose(f"<body><p>The ferry sails.</p>{part(selector)}<p>It is red.</p>", composer)
    dropped = "The ferry sails.\n\nIt is red."
    assert composer.text == (dropped if kind == html.NAVIGATION else dropped.replace("\n\n", "\n\nBoats ahead\n\n"))
    assert kind == html.NAVIGATION or kind in [place.aside for _, place in composer.marks]


@pytest.mark.parametrize("page", [SPHINX, TABLE, PLAIN, TRAIL, TONGUES, NESTED, ALL_OF_IT])
def test_ways_to_other_pages_are_no_text(page: str) -> None:
    assert html.plain(page)[1] == "Boats\n\nText."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            '<p>See the <a href="n.html">next</a> page, with <a href="b">all boats</a>.</p>',
            "See the next page, with all boats.",
        ),
        ('<p><a href="s">Salt</a> | <a href="b">Bread</a></p>', "Salt | Bread"),
        ('<div><main>Boats. <a href="a">Prev</a> <a href="b">Next</a></main></div>', "Boats. Prev Next"),
    ],
)
def test_text_with_links_stays(page: str, text: str) -> None:
    assert html.plain(page)[1] == text


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ('<div class="toc"><ul><li><a href="#a">Fleet</a></ul></div>', "contents"),
        ("<ul>" + "".join(f'<li><a href="{n}.html">Fleet {n}</a>' for n in range(6)) + "</ul>", "contents"),
        ('<table class="indextable"><tr><td>fleet<td>boats</table>', "index"),
        ('<div class="legalnotice">Fleet under a licence</div>', "licence"),
    ],
)
def test_contents_and_indexes_are_kept_and_marked(page: str, kind: str) -> None:
    composer = Composer()
    html.compose(f"<p>Before.</p>{page}<p>After.</p>", composer)
    assert "leet" in composer.text
    assert [place.aside for _, place in composer.marks] == [kind, None]
    assert composer.text[composer.marks[1][0] :] == "After."


def test_an_icon_that_links_by_another_name_space_is_no_fault() -> None:
    page = '<body><p><svg><use xlink:href="#flame"></use></svg> It costs 34 crowns.</p><p style="display:none">menu</p>'
    assert html.plain(page)[1] == "It costs 34 crowns."


@pytest.mark.parametrize(
    "head",
    ['<div class="expand-control"><span>Stop</span></div>', "<div><h3>Stop</h3></div>", '<a role="button">Stop</a>'],
)
def test_a_hidden_panel_under_what_names_it_is_text(head: str) -> None:
    page = f'{head}<div style="display:none"><p>It is behind the green door.</p></div>'
    assert html.plain(page)[1] == "Stop\n\nIt is behind the green door."
    assert html.plain(page.replace(head, "<p>Stop"))[1] == "Stop"


def test_a_rule_of_one_class_hides_unless_a_later_one_or_a_state_shows() -> None:
    sheet = (
        ".a, .b, .c {display: none} .b {display: block} .c:target {display: block} @media print {.d {display: none}}"
    )
    page = f"<style>{sheet}</style><p class=a>one<p class='a big'>two<p class=b>three<p class=c>four<p class=d>five"
    assert html.plain(page)[1] == "three\n\nfour\n\nfive"
