"""The list of a document that an answer's excerpts are part of."""

import pytest

from shardqa import keys, places
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


def rules(title: str, text: str, marks: places.Raw) -> list[Excerpt]:
    passage = PassageRecord(keys.passage("c", "d", 0), title, text, 0, rank_score=1.0, null_logit=0.0, places=marks)
    return [Excerpt(passage, 0, 4, 0.0, 0.9)]


RULES = "It is old.\n\nRules\n\n- Run.\n- Hold nothing."


@pytest.mark.parametrize("question", ["which rules does corrie ball have?", "what are the rules?", "list the rules"])
def test_a_list_below_the_heading_that_is_asked_for_is_the_answer_whatever_else_was_read(question: str) -> None:
    found = lists.headed(rules("Corrie ball", RULES, [[12, {"headings": ["Rules"]}]]), question)
    assert [one.text for one in found] == ["- Run.", "- Hold nothing."]


@pytest.mark.parametrize("question", ["what is forbidden?", "What is forbidden"])
def test_a_list_whose_heading_is_the_question_is_the_answer(question: str) -> None:
    read = rules("Ball", RULES, [[12, {"headings": ["What is forbidden?"]}]])
    assert [one.text for one in lists.headed(read, question)] == ["- Run.", "- Hold nothing."]
    assert lists.headed(read, f"{question} indoors") == []


def test_a_list_goes_on_in_the_passage_behind() -> None:
    marks: places.Raw = [[0, {"headings": ["Rules"]}]]
    text, start = "- Hold nothing.\n- Shout.", RULES.index("- Hold")
    behind = PassageRecord(keys.passage("c", "d", 1), "Corrie ball", text, start, 1.0, 0.0, places=marks)
    read = [Excerpt(behind, start, start + 4, 0.0, 0.9), *rules("Corrie ball", RULES, marks)]
    assert [one.text for one in lists.headed(read, "what are the rules?")] == ["- Run.", "- Hold nothing.", "- Shout."]


def test_the_line_above_a_list_names_it_too() -> None:
    of_things = rules("Ball", "Members bring things:\n1. a key\n2. a fee", [])
    assert [one.text for one in lists.headed(of_things, "which things do members bring?")] == ["1. a key", "2. a fee"]
    assert lists.headed(of_things, "which guests do members bring?") == []


@pytest.mark.parametrize(
    ("question", "heading"),
    [("which rules were changed?", "Rules"), ("who is allowed to run?", "Rules"), ("what are the rules?", "Clubs")],
)
def test_a_list_below_another_heading_or_of_which_more_is_asked_is_not(question: str, heading: str) -> None:
    text = RULES.replace("Rules", heading)
    assert lists.headed(rules("Corrie ball", text, [[12, {"headings": [heading]}]]), question) == []


LEASE = "1. Terms\n1.2 The term is a year.\n\n2. Rent\n2.1 It is due, see 1.2:\n(a) in May.\n2.10 It rises.\n\nSigned."


@pytest.mark.parametrize(
    ("question", "clause"),
    [
        ("what does clause 1.2 say?", "1.2 The term is a year."),
        ("what does § 2.1 of the lease say?", "2.1 It is due, see 1.2:\n(a) in May."),
        ("what is section 2 about?", LEASE[LEASE.index("2. Rent") :]),
        ("what does clause 1.2 say about the rent?", ""),
        ("what does clause 3.1 say?", ""),
    ],
)
def test_a_clause_that_is_asked_for_by_its_number_is_the_answer(question: str, clause: str) -> None:
    assert [one.text for one in lists.numbered(rules("Lease", LEASE, []), question)] == [clause] * bool(clause)


def test_items_apart_and_items_among_other_excerpts_are_no_list() -> None:
    assert lists.whole([excerpt("the key", 0.9), excerpt("Sign", 0.6)], [], "Who rang?") is None
    others = [excerpt("The mill", 0.9), excerpt("All is", 0.5)]
    assert lists.whole([*others, excerpt("the key", 0.8), excerpt("the sheet", 0.6)], [], "Who rang?") is None
