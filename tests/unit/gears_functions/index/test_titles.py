"""Titles by the words that texts name them with."""

import pytest

from shardqa import keys
from shardqa.analysis import analyse
from shardqa.gears_functions.index import passage_table
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.index.titles import Titles


def titles(**of: str) -> Titles:
    found = Titles()
    for document, title in of.items():
        found.put(document, title, analyse(title))
    return found


def named(known: Titles, text: str) -> set[str]:
    return {document for title in known.named_in(analyse(text).content) for document in known.bearers(title)}


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Ed Wood", "It was directed by Ed Wood in a week."),
        ("Ed Wood (film)", "He liked Ed Wood, a film of 1994."),
        ("Ilse Marquardt, Engineer", "It was planned by Ilse Marquardt."),
        ("Aurel 7: User Manual", "The best known is the Aurel 7."),
        ("The Lord of the Rings", "the film The Lord of the Rings won"),
        ("Málaga", "She moved to malaga."),
    ],
)
def test_a_text_names_a_title(title: str, text: str) -> None:
    assert named(titles(a=title, b="Something else"), text) == {"a"}


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Ed Wood", "A wood near Edinburgh; Wood, Ed."),
        ("Paris, Texas", "It stands in Paris."),
        ("The Who", "Those who sang"),
        ("", "nothing"),
        ("two three four five six seven eight nine ten", "two three four five six seven eight nine ten"),
    ],
)
def test_a_text_does_not_name_a_title(title: str, text: str) -> None:
    assert named(titles(a=title), text) == set()


def test_documents_of_one_title_are_all_found_and_one_by_one_forgotten() -> None:
    index = titles(a="The Corvin mill", b="Corvin Mill")
    assert named(index, "near the Corvin mill") == {"a", "b"}
    index.remove("a")
    assert (named(index, "near the Corvin mill"), len(index)) == ({"b"}, 1)
    index.put("b", "The river Ashel", analyse("The river Ashel"))
    assert named(index, "near the Corvin mill") == set()
    assert named(index, "the river Ashel") == {"b"}
    index.remove("b")
    index.remove("b")
    assert len(index) == 0


def test_an_index_has_the_titles_of_the_documents_that_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_table, "COMPACT_DEAD", 2)
    index = Index()
    for n in range(6):
        for part in range(2):
            index.put(keys.passage("c", f"d{n}", part), f"Mill {n}", f"words of mill {n}, part {part}")
    for n in range(4):
        for part in range(2):
            index.remove(keys.passage("c", f"d{n}", part))
    found = index.titles_in([analyse("Mill 3 and mill 4, mill 5").content])
    assert found.titles == {"mill 4": 1, "mill 5": 1}
    assert found.words == {"mill": 4, "4": 2, "5": 2}
    (words,) = index.first_words([(keys.passage("c", "d4", 1), 1.0)])
    assert words == analyse("words of mill 4, part 1").content
    index.put(keys.passage("c", "d4", 0), "Ford", "words")
    assert index.titles_in([["ford"], ["mill", "4"]]).titles == {"ford": 1}
