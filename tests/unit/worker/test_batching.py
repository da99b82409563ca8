"""Requests of a model that may be one run, and runs that do not end."""

import threading
import time
from unittest.mock import Mock

import numpy as np

from shardqa.worker.activity import SIZE, SLOT, SLOT_SIZE, Activity
from shardqa.worker.ai.batching import BOUND, UNHEEDED, Batching, LoadedModel, ModelActivity, Request


def likeness(*shapes: tuple[int, ...]) -> object:
    return Request([np.zeros(shape, np.float32) for shape in shapes], lambda result: None).likeness()


def test_requests_are_alike_whose_inputs_differ_in_rows_alone() -> None:
    assert likeness((1, 4), (1, 2)) == likeness((3, 4), (3, 2)) != likeness((1, 4), (1, 3))


def test_a_request_whose_inputs_differ_in_rows_is_run_alone() -> None:
    assert likeness((2, 4), (3, 4)) is None
    assert likeness((2, 4), ()) is None


def test_a_run_that_nobody_waits_for_any_more_has_a_deadline_after_which_the_module_ends_the_worker() -> None:
    start, end, activity = threading.Event(), threading.Event(), Activity()

    def run(arrays: object, options: object) -> object:
        start.set()
        end.wait()
        return arrays

    deaf = Mock(concurrent=False, splits=False, run=run)
    model = LoadedModel(lambda: deaf, Batching(BOUND, 0, 0), lambda *_: None, ModelActivity(activity, b"model deaf", 1))
    request = Request([np.zeros(1)], lambda _: None)

    def deadlines() -> list[int]:
        return [SLOT.unpack_from(activity._page, at)[4] for at in range(SLOT_SIZE, SIZE, SLOT_SIZE)]

    model.put(request)
    start.wait()
    assert not any(deadlines())
    model.cancel(request)
    assert time.monotonic() < max(deadlines()) / 1e6 <= time.monotonic() + UNHEEDED
    end.set()
    model.drop()


def test_what_is_asked_of_a_model_after_its_end_is_answered() -> None:
    idle = Mock(concurrent=False)
    results: list[object] = []
    model = LoadedModel(lambda: idle, Batching(0, 0, 0), lambda *_: None, ModelActivity(Activity(), b"model idle", 1))
    model.drop()
    model._thread.join()
    model.put(Request([np.zeros(1)], results.append))
    assert [str(one) for one in results] == ["ERR model key is empty"]
