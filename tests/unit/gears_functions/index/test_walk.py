"""A walk over an index passes each passage once, the newest first, whatever changes meanwhile."""

from shardqa import keys
from shardqa.gears_functions.index import corpus_index
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.index.walk import Walk


def put(index: Index, *numbers: int, text: str = "a mill") -> None:
    for number in numbers:
        index.put(name(number), "", f"{text} {number}")


def name(number: int) -> str:
    return keys.passage("c", f"d{number}", 0)


def walked(walk: Walk, limit: int = 3) -> list[str]:
    found = list[str]()
    while (page := walk.page(limit)) is not None:
        found += [passage for _, passage in page.passages]
        walk.walked(page, len(page.passages))
    return found


def test_the_newest_come_first_and_each_comes_once() -> None:
    index = Index()
    put(index, *range(8))
    walk = Walk(index)
    assert walk.left() == 8
    assert walked(walk) == [name(number) for number in range(7, -1, -1)]
    assert walk.left() == 0


def test_what_comes_meanwhile_is_next() -> None:
    index = Index()
    put(index, *range(4))
    walk = Walk(index)
    page = walk.page(2)
    assert page is not None
    put(index, 4, 5)
    walk.walked(page, 1)
    assert walked(walk) == [name(number) for number in (5, 4, 2, 1, 0)]


def test_a_passage_that_changed_comes_again_and_one_that_went_does_not() -> None:
    index = Index()
    put(index, *range(4))
    walk = Walk(index)
    walked(walk)
    put(index, 1, text="a ford")
    index.remove(name(2))
    assert walk.left() == 1
    assert walked(walk) == [name(1)]


def test_what_was_not_done_comes_again() -> None:
    index = Index()
    put(index, 0, 1)
    walk = Walk(index)
    for done in (0, 0, 2):
        page = walk.page(9)
        assert page is not None
        assert len(page.passages) == 2
        walk.walked(page, done)
    assert walk.page(9) is None


def test_after_a_compaction_all_come_again_and_a_page_from_before_it_does_nothing() -> None:
    index = Index()
    many = 2 * corpus_index.COMPACT_DEAD
    put(index, *range(many))
    walk = Walk(index)
    before = walk.page(many)
    for number in range(many // 2):
        index.remove(name(number))
    assert index.compactions == 1
    assert before is not None
    walk.walked(before, len(before.passages))
    assert len(walked(walk, many)) == many // 2


def test_a_walk_knows_its_index() -> None:
    index = Index()
    assert Walk(index).is_of(index)
    assert not Walk(index).is_of(Index())
