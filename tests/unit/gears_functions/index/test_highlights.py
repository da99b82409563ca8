"""Highlights: the words of a text with their exact places are those that the index has of it."""

from hypothesis import example, given
from hypothesis import strategies as st

from shardqa import analysis
from shardqa.analysis import query
from shardqa.gears_functions.index import highlights

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.lists(
    st.sampled_from(
        [
            "C++",
            "c#",
            ".NET",
            "10⁵",
            "10⁻³",
            "3,000.5",
            "Beyoncé’s",
            "it's",
            "Ångström",
            "ﬁne",
            "東京都",
            "a東京b",
            "İ",
            "ß",
            "한국어",
        ]
    )
).map(" ".join)


@given(texts)
@example("Beyoncé's 10⁵ ﬁnches, C++17 and 東京都の.")
def test_the_words_located_are_those_of_the_analysis(text: str) -> None:
    found = list(highlights.located(text))
    assert sorted(word for _, _, word in found) == sorted(analysis.words(text))
    assert all(0 <= start < end <= len(text) for start, end, _ in found)


def test_a_match_is_the_word_as_it_stands() -> None:
    text = "Beyoncé’s mills cost 10⁵ crowns; the ﬁne Milling Co. of 東京都."
    marked = [text[start:end] for start, end, _ in highlights.matched(text, query("beyonce mill 10⁵ fine 京都"))]
    assert marked == ["Beyoncé", "mills", "10⁵", "ﬁne", "Milling", "京都"]
