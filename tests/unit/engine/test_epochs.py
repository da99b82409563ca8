"""An engine believes the epochs of a corpus while it hears of changes; no network."""

from time import monotonic

import pytest

from shardqa.engine import epochs
from shardqa.engine.epochs import Epochs
from tests.unit.engine.test_input import NoShards


@pytest.fixture
def followed() -> Epochs:
    """Epochs whose subscription stands."""
    epochs = Epochs(NoShards())
    epochs._hear({"type": "subscribe", "data": 1})
    return epochs


def learn(followed: Epochs, numbers: dict[str, int]) -> None:
    with followed.reading("c") as reading:
        followed.learn(reading, numbers)


def hear(followed: Epochs, text: str) -> None:
    followed._hear({"type": "message", "data": text.encode()})


def test_what_was_read_is_known_while_the_subscription_stands(followed: Epochs) -> None:
    learn(followed, {"a": 1, "b": 2})
    assert followed.known("c") == {"a": 1, "b": 2}
    followed._lose()
    assert followed.known("c") is None


@pytest.mark.parametrize("before", [{}, {"a": 1, "b": 1}])
def test_an_announcement_that_overtakes_the_reading_of_a_slow_shard_is_not_forgotten(
    followed: Epochs, before: dict[str, int]
) -> None:
    if before:
        learn(followed, before)
    with followed.reading("c") as reading:
        hear(followed, "c b 7")  # after shard b said 1, while shard a was still thinking
        hear(followed, "other a 9")
        followed.learn(reading, {"a": 1, "b": 1})
    assert followed.known("c") == {"a": 1, "b": 7}


def test_each_of_two_readings_at_once_hears_until_it_ends(followed: Epochs) -> None:
    with followed.reading("c") as first:
        with followed.reading("c") as second:
            followed.learn(second, {"a": 1, "b": 1})
        hear(followed, "c b 7")
        followed.learn(first, {"a": 1, "b": 1})
    assert followed.known("c") == {"a": 1, "b": 7}


def test_a_reading_that_outlived_the_subscription_teaches_nothing(followed: Epochs) -> None:
    with followed.reading("c") as reading:
        followed._lose()
        followed._hear({"type": "subscribe", "data": 1})
        followed.learn(reading, {"a": 1})
    assert followed.known("c") is None


def test_a_reading_that_began_before_the_subscription_teaches_nothing() -> None:
    early = Epochs(NoShards())
    with early.reading("c") as reading:
        early._hear({"type": "subscribe", "data": 1})
        early.learn(reading, {"a": 1})
    assert early.known("c") is None


def test_tags_that_left_are_forgotten_with_the_next_reading(followed: Epochs) -> None:
    learn(followed, {"a": 1, "b": 1})
    learn(followed, {"a": 1, "z": 3})
    assert followed.known("c") == {"a": 1, "z": 3}


def test_what_is_known_is_read_again_after_a_while(followed: Epochs, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(followed, {"a": 1})
    later = monotonic() + epochs.KNOWN_SECONDS
    monkeypatch.setattr("shardqa.engine.epochs.monotonic", lambda: later)
    assert followed.known("c") is None


@pytest.mark.parametrize(
    "text", ["", "c", "c b", "c b x", "c b 1 2", "c b -1", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")]
)
def test_a_message_that_is_none_of_ours_changes_nothing(followed: Epochs, text: str) -> None:
    learn(followed, {"a": 1})
    hear(followed, text)
    assert followed.known("c") == {"a": 1}
