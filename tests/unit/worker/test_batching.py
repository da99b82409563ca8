"""Requests of a model that may be one run."""

import numpy as np

from shardqa.worker.ai.batching import Request


def likeness(*shapes: tuple[int, ...]) -> object:
    return Request([np.zeros(shape, np.float32) for shape in shapes], lambda result: None).likeness()


def test_requests_are_alike_whose_inputs_differ_in_rows_alone() -> None:
    assert likeness((1, 4), (1, 2)) == likeness((3, 4), (3, 2)) != likeness((1, 4), (1, 3))


def test_a_request_whose_inputs_differ_in_rows_is_run_alone() -> None:
    assert likeness((2, 4), (3, 4)) is None
    assert likeness((2, 4), ()) is None
