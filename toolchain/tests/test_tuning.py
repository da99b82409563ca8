"""Forms of the reader are compared by their logits, and the fastest of the equal ones is named."""

from collections.abc import Sequence

import numpy as np
import pytest

from shardqa.models import shipped
from shardqa.models.reader import Row
from shardqa.models.session import Logits
from shardqa_toolchain import tuning
from shardqa_toolchain.tuning import ReaderForm, Tried


def read(rows: Sequence[Row], off: float = 0.0) -> list[Logits]:
    return [(np.full(len(row), off, np.float32), np.zeros(len(row), np.float32)) for row in rows]


def tried(name: str, ms: float, difference: float = 0.0, is_shipped: bool = True) -> Tried:
    return Tried(name, 1, ms, difference, is_shipped)


def test_the_shipped_reader_says_the_same_on_any_number_of_threads() -> None:
    found = tuning.tune(tuning.forms(shipped.folder(), 3), 0.0)
    assert [one.threads for one in found] == [1, 2, 3]
    assert all(one.is_exact and one.ms > 0 for one in found)


def test_each_form_is_compared_with_the_first() -> None:
    forms = [
        ReaderForm("a", 1, read),
        ReaderForm("b", 1, lambda rows: read(rows, 0.25)),
        ReaderForm("c", 1, lambda rows: read(rows, 9.0)),
    ]
    assert [(one.difference, one.verdict) for one in tuning.tune(forms, 0.0)] == [
        (0, "equal"),
        (0.25, "close"),
        (9, "another reader"),
    ]


@pytest.mark.parametrize(
    ("others", "best"),
    [
        ([tried("faster", 40)], "faster"),
        ([tried("hardly faster", 95)], "as shipped"),
        ([tried("slower", 200)], "as shipped"),
        ([tried("not equal", 10, difference=0.1)], "as shipped"),
        ([tried("float32", 10, is_shipped=False)], "as shipped"),
        ([tried("faster", 40), tried("fastest", 30)], "fastest"),
    ],
)
def test_the_fastest_of_those_that_any_shard_may_choose(others: list[Tried], best: str) -> None:
    assert tuning.chosen([tried("as shipped", 100), *others]).name == best
