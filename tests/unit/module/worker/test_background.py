"""What nobody asked for waits for nobody's run, and nobody waits for it."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shardqa.gears_functions.runtime import ToEncode
from shardqa.module.worker.activity import Activity
from shardqa.module.worker.ai.backend import ModelError
from shardqa.module.worker.ai.background import Background, GaveWay
from shardqa.module.worker.ai.batching import EncodedPassage, LoadedModel, Request, Result, ShownActivity, batching_of

SECONDS = 20


class Slow:
    """A model whose runs in the background go on until they are stopped."""

    inputs: Sequence[str] = ["x"]
    outputs: Sequence[str] = ["y"]
    splits, concurrent = True, True

    def __init__(self) -> None:
        self.began, self.stopped = threading.Event(), threading.Event()

    def encode(self, passage: Any, value: bytes | None, options: Any) -> EncodedPassage | None:
        self.began.set()
        assert self.stopped.wait(SECONDS)
        raise ModelError("ERR stopped")

    def run(self, arrays: Any, options: Any) -> list[Any]:
        return list(arrays)

    def sequence_cuts(self, padded: Any) -> list[None]:
        return [None]

    def options(self) -> object:
        return object()

    def terminate(self, options: Any) -> None:
        self.stopped.set()


def loaded(model: Any, background: Background) -> LoadedModel:
    ready = threading.Event()
    shown = ShownActivity(Activity(), b"model", 1, background)
    found = LoadedModel(lambda: model, batching_of(0, 0, 0), lambda *_: ready.set(), shown)
    assert ready.wait(SECONDS)
    return found


def given(*numbers: int) -> list[ToEncode]:
    return [ToEncode(np.full(3, number), None) for number in numbers]


def in_background(background: Background, job: Callable[[], Any]) -> Callable[[], Any]:
    """Begins it; returns what waits for its result."""
    done, results = threading.Event(), list[Any]()

    def run() -> None:
        results.append(job())
        done.set()

    background.put(run)

    def wait() -> Any:
        assert done.wait(SECONDS)
        return results[0]

    return wait


def test_a_request_is_answered_while_passages_are_encoded_and_stops_that() -> None:
    background, model = Background(), Slow()
    holder = loaded(model, background)
    encoded = in_background(background, lambda: holder.encode(given(*[1] * 8), lambda: True))
    assert model.began.wait(SECONDS)
    answered, found = threading.Event(), list[Any]()

    def done(result: Result | Exception) -> None:
        found.append(result)
        answered.set()

    holder.put(Request([np.ones((1, 2))], done))
    assert answered.wait(SECONDS)
    assert isinstance(found[0], Result)
    assert (encoded().keys, encoded().is_full) == ([], False)
    holder.drop()


def test_nothing_begins_while_somebody_waits() -> None:
    background = Background()
    background.begin()
    with pytest.raises(GaveWay):
        background.attempt(lambda: 1, lambda: None)
    background.end()
    assert background.attempt(lambda: 1, lambda: None) == 1


def test_an_error_of_its_own_is_no_giving_way() -> None:
    def fail() -> None:
        raise ModelError("ERR too long")

    with pytest.raises(ModelError):
        Background().attempt(fail, lambda: None)


class Quick(Slow):
    """Has room for some, and can't read an odd one."""

    def encode(self, passage: Any, value: bytes | None, options: Any) -> EncodedPassage | None:
        if passage[0] > 4:
            return None
        if passage[0] % 2:
            raise ModelError("ERR odd")
        return EncodedPassage(bytes([int(passage[0])]))


@pytest.mark.parametrize(
    ("passages", "keys", "is_full"), [((0, 1, 2), [b"\0", b"", b"\2"], False), ((2, 9, 4), [b"\2"], True)]
)
def test_it_tells_how_far_it_came(passages: Sequence[int], keys: list[bytes], is_full: bool) -> None:
    background = Background()
    holder = loaded(Quick(), background)
    found = in_background(background, lambda: holder.encode(given(*passages), lambda: True))()
    assert (found.keys, found.is_full) == (keys, is_full)
    holder.drop()


def test_a_question_that_is_heard_ends_it_between_two_passages() -> None:
    background = Background()
    holder = loaded(Quick(), background)
    turns = iter((True, True, False))
    found = in_background(background, lambda: holder.encode(given(0, 2, 4), lambda: next(turns)))()
    assert found.keys == [b"\0", b"\2"]
    holder.drop()
