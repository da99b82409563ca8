"""Answers as notebooks show them."""

from shardqa.answer_lines import Lines
from shardqa.schema import Answer, Timing


def answer(passage: str | None, start: int | None, end: int | None) -> Answer:
    return Answer(
        question="Who?", corpus="c", answer=None, score=0.91, no_answer=passage is None, document="d", title="A <b>",
        start=start, end=end, passage=passage, passage_start=10, n_best=[], cached=False, cache=None, partial=False,
        failed=[], shards=[], model="m", timing=Timing(), lines=Lines(0.04, 0.2, 0.41),
    )  # fmt: skip


def test_a_notebook_shows_the_passage_with_the_answer_marked() -> None:
    shown = answer("by Ida <x> Holm.", 13, 20)._repr_html_()
    assert shown == "<blockquote>by <mark>Ida &lt;x&gt;</mark> Holm.</blockquote><p>A &lt;b&gt;, 91%</p>"


def test_a_notebook_shows_no_passage_where_nothing_is_answered() -> None:
    assert answer(None, None, None)._repr_html_() == "<p>no sure answer</p>"
