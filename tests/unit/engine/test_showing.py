"""People are shown nothing of another matter, and nothing twice."""

import pytest

from shardqa import analysis
from shardqa.engine import showing
from shardqa.schema import Candidate, Part

MILL = "The river at the mill was measured."
QUERY = analysis.query("How deep is the river at the mill?")


def part(text: str, title: str = "") -> Part:
    return Part(text=text, corpus="c", document="d", title=title, start=0, end=len(text), score=0.3)


def candidate(answer: str, score: float, passage: str = MILL) -> Candidate:
    return Candidate(
        answer=answer, score=score, corpus="c", document="d", title="", start=0, end=1, passage=passage,
        passage_start=0, shard="s", rank_score=1.0, margin=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        ([(MILL, ""), ("Magda taught.", "Comet"), ("It is cold.", "Rivers")], [MILL, "It is cold."]),
        ([("Magda taught.", "Comet"), ("Rain fell for long.", "")], ["Magda taught.", "Rain fell for long."]),
    ],
    ids=["some have a word of the question", "none has"],
)  # fmt: skip
def test_sentences_of_another_matter_are_left_out_beside_others(
    texts: list[tuple[str, str]], sentences: list[str]
) -> None:
    assert [one.text for one in showing.same_matter(QUERY, [part(*one) for one in texts])] == sentences


@pytest.mark.parametrize(("answer", "possible"), [(None, ["287 m", "278 m"]), ("287 m", ["278 m", "Magda"])])
def test_other_answers_are_near_the_first_and_say_something_new(answer: str | None, possible: list[str]) -> None:
    every = [("287 m", 0.15), ("the 287 m", 0.1), ("278 m", 0.06), ("the mills", 0.06), ("by", 0.01)]
    found = [candidate(*one) for one in every] + [candidate("Magda", 0.06, "Magda taught.")]
    marked = showing.others(QUERY, answer, found)
    assert [one.answer for one in marked if one.possible] == possible
    assert len(marked) == len(found)
