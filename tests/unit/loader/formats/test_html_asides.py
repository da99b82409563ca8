"""Parts of pages around their text: dropped where it only leads on, marked where it is contents or an index."""

import pytest

from shardqa.loader.composer import Composer
from shardqa.loader.formats import html

SPHINX = (
    '<div class="related"><a href="a">next</a></div><h1>Boats<a class="headerlink" href="#b">¶</a></h1><p>Text.</p>'
)
TABLE = '<h1>Boats</h1><p>Text.</p><table><tr><td><a href="a">Prev</a><td><a href="c">Next</a></table>'
PLAIN = '<h1>Boats</h1><p>Text.</p><p>[<a href="a.html">Previous</a> | <a href="c.html">Next</a>]</p>'


@pytest.mark.parametrize("page", [SPHINX, TABLE, PLAIN])
def test_ways_to_other_pages_are_no_text(page: str) -> None:
    assert html.plain(page)[1] == "Boats\n\nText."


def test_a_paragraph_that_mentions_the_next_page_stays() -> None:
    page = '<p>See the <a href="n.html">next</a> page, which tells all about boats.</p>'
    assert html.plain(page)[1] == "See the next page, which tells all about boats."


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
