"""Weights of evidence are fitted to marked sentences."""

from dataclasses import replace

import numpy as np
import pytest

from shardqa.errors import BadData
from shardqa_toolchain.evidence_calibration import MarkedRow, fit, left_out

EMPTY = MarkedRow(np.zeros(0), np.zeros((0, 2)), np.zeros(0, int), np.zeros(0, int), 3)


def row(*sentences: tuple[float, int, int], missed: int = 0) -> MarkedRow:
    """Returns a row of sentences (margin, words, marked words); `missed` are marked words of no sentence."""
    margins, words, right = (np.array(column) for column in zip(*sentences, strict=True))
    return MarkedRow(margins, np.zeros((len(words), 2)), words, right, int(right.sum()) + missed)


def rows(marked: int = 1, shift: float = 0.0) -> list[MarkedRow]:
    """Each with three sentences of ten words, of which the best `marked` are evidence, some by chance."""
    random = np.random.default_rng(1)
    made = []
    for _ in range(60):
        margins = np.sort(random.normal(shift, 3, 3))[::-1]
        made.append(row(*((float(margin), 10, 10 * int(n < marked)) for n, margin in enumerate(margins))))
    return made


def test_a_surer_sentence_and_one_nearer_the_best_is_likelier() -> None:
    weights = fit({"a": rows(), "b": rows(2)})
    assert weights.near > 0


def test_the_outputs_of_evidence_and_relevance_count_where_they_tell() -> None:
    telling = [replace(one, outputs=np.column_stack([one.right - 5.0, one.right - 5.0])) for one in rows()]
    weights = fit({"a": telling})
    assert weights.evidence + weights.relevance > 0.1
    assert (fit({"a": rows()}).evidence, fit({"a": rows()}).relevance) == (0, 0)


def test_each_file_is_reported_by_a_fit_without_it_and_tests_by_all() -> None:
    outcomes = list(
        left_out(
            {"a": rows(), "b": rows()},
            {"c": rows(2), "empty": [EMPTY]},
        )
    )
    assert [one.file for one in outcomes] == ["a", "b", "c", "empty"]
    assert all(0 <= one.f1 <= 100 for one in outcomes)
    assert outcomes[0].f1 > 60
    assert outcomes[3].f1 == 0


def test_marked_words_that_no_sentence_holds_are_missed() -> None:
    whole, lacking = ({"a": [row((5.0, 10, 10), (-5.0, 10, 0), missed=missed)] * 9} for missed in (0, 10))
    assert next(left_out({"x": rows()}, whole)).f1 > next(left_out({"x": rows()}, lacking)).f1


def test_a_fit_needs_sentences_of_both_kinds() -> None:
    with pytest.raises(BadData, match="0 of 2 sentences are marked"):
        fit({"a": [row((1.0, 5, 0), (2.0, 5, 0))]})
