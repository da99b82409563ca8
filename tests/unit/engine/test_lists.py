"""The list of a document that an answer's excerpts are part of."""

from shardqa import keys
from shardqa.engine import lists
from shardqa.engine.parts import Excerpt
from shardqa.models.reading_record import PassageRecord

TEXT = (
    "The mill stands.\n\nSteps of the first week:\n\n1. Ask for the key.\n2. Read the sheet.\n3. Sign.\n\nAll is well."
)
STEPS = TEXT[TEXT.index("1.") : TEXT.index("\n\nAll")]
PASSAGE = PassageRecord(keys.passage("c", "d", 0), "t", TEXT, 10, rank_score=1.0, null_logit=0.0)
QUESTION = "What are the steps of the first week?"


def excerpt(words: str, score: float) -> Excerpt:
    start = 10 + TEXT.index(words)
    return Excerpt(PASSAGE, start, start + len(words), 0.0, score)


def test_items_side_by_side_are_the_whole_list_with_the_mean_of_its_items_scores() -> None:
    found = lists.whole([excerpt("the key", 0.9), excerpt("the sheet", 0.6)], [excerpt("3. Sign.", 0.3)], "Who?")
    assert found is not None
    assert (found.text, round(found.score, 3)) == (STEPS, 0.6)


def test_one_item_is_the_whole_list_where_the_line_above_it_is_asked_for() -> None:
    found = lists.whole([excerpt("The mill", 0.9), excerpt("the key", 0.6)], [], QUESTION)
    assert found is not None
    assert found.text == STEPS


def test_items_apart_and_items_among_other_excerpts_are_no_list() -> None:
    assert lists.whole([excerpt("the key", 0.9), excerpt("Sign", 0.6)], [], "Who rang?") is None
    others = [excerpt("The mill", 0.9), excerpt("All is", 0.5)]
    assert lists.whole([*others, excerpt("the key", 0.8), excerpt("the sheet", 0.6)], [], "Who rang?") is None
