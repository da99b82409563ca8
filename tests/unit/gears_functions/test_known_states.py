"""States of texts that are gone can make room; those that a passage still has stay."""

from shardqa import keys
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.states import KnownStates

ONE, TWO, THREE = (keys.passage("c", document, 0) for document in ("one", "two", "three"))


def known(index: Index) -> KnownStates:
    found = KnownStates()
    for passage, states in ((ONE, b"1"), (TWO, b"2"), (THREE, b"2")):
        found.add("c", passage, index.digest(passage), states)
    return found


def filled() -> Index:
    index = Index()
    for passage, text in ((ONE, "a mill"), (TWO, "a ford"), (THREE, "a ford")):
        index.put(passage, "", text)
    return index


def test_nothing_is_gone_while_all_is_as_it_was() -> None:
    index = filled()
    assert known(index).gone({"c": index}) == []


def test_a_text_that_changed_is_gone_and_is_told_once() -> None:
    index = filled()
    found = known(index)
    index.put(ONE, "", "a mill at the ford")
    assert found.gone({"c": index}) == [b"1"]
    assert found.gone({"c": index}) == []


def test_states_that_another_passage_has_too_stay() -> None:
    index = filled()
    found = known(index)
    index.remove(TWO)
    assert found.gone({"c": index}) == []
    index.remove(THREE)
    assert found.gone({"c": index}) == [b"2"]


def test_a_corpus_that_is_gone_takes_all_of_its_states_along() -> None:
    assert sorted(known(filled()).gone({})) == [b"1", b"2", b"2"]
