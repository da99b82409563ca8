"""A passage as it lies in Redis, before it is read."""

import numpy as np
import pytest

from shardqa import keys
from shardqa.gears_functions import passage_reading

KEY = keys.passage("c", "mill", 0)
HASH = [b"Ada built it.", b"0", b"", "Mills › Hallow Ford".encode()]
IDS = np.array([5, 6, 7], dtype="<i4")


def ids(document: list[bytes | None], hash: list[bytes] | None = None) -> list[int] | None:
    loaded = passage_reading.loaded(KEY, 1.0, hash or HASH, IDS.tobytes(), document, b"Mill")
    assert loaded is not None
    return None if loaded.ids is None else loaded.ids.tolist()


def test_the_tokens_of_a_whole_document_are_compared() -> None:
    assert ids([b"{}", b"d1gest"]) == [5, 6, 7]


@pytest.mark.parametrize("document", [[b"{}", None], [None, None]])
def test_the_tokens_of_a_document_that_was_not_written_to_its_end_are_not_relied_on(
    document: list[bytes | None],
) -> None:
    assert ids(document) is None


def test_the_reader_sees_the_last_heading_of_a_path() -> None:
    loaded = passage_reading.loaded(KEY, 1.0, HASH, IDS.tobytes(), [b"{}", b"d1gest"], b"Mill")
    assert loaded is not None
    assert loaded.heading == "Hallow Ford"


def test_a_passage_that_is_gone_is_none() -> None:
    assert passage_reading.loaded(KEY, 1.0, [None] * 4, IDS.tobytes(), [None, None], None) is None
