"""Vectors beside words: equal scores however the corpus is cut, whatever was removed, and never another encoder's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa import filters, keys
from shardqa.analysis import query
from shardqa.filters import DocumentFilter
from shardqa.gears_functions.index import vectors
from shardqa.gears_functions.index.catalogue import DocumentInfo
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.index.vectors import Vectors
from shardqa.models.embedding import HALF, WIDTH, StoredVectors, packed, text_digest
from shardqa.statistics import ENOUGH, CorpusStatistics, QuestionVector, total

DICE = np.random.default_rng(3)
ENCODER, OTHER = "0123456789abcdef", "fedcba9876543210"
TEXTS = {f"d{n}": f"the mill number {n} of {'Tarn' if n % 3 else 'Ostby'} stands by a river" for n in range(700)}
VECTORS = {name: packed(DICE.integers(-127, 128, (1 + n % 3, WIDTH)).astype(np.int8)) for n, name in enumerate(TEXTS)}
QUESTION = QuestionVector(ENCODER, DICE.integers(-127, 128, WIDTH).astype(np.int8).tobytes())
ASKED = query("which mill stands in ostby")


def key_of(name: str) -> str:
    return keys.passage("c", name, 0)


def filled(names: list[str], encoded: set[str]) -> Index:
    index = Index()
    for name in names:
        index.put(key_of(name), "mill", TEXTS[name])
        if name in encoded:
            assert index.put_vectors(key_of(name), stored(name))
    return index


def stored(name: str, encoder: str = ENCODER) -> StoredVectors:
    return StoredVectors(encoder, text_digest("mill", TEXTS[name]), VECTORS[name])


def merged(shards: list[Index], limit: int = 50, filter_: str = "") -> list[tuple[str, float]]:
    statistics = total(shard.statistics(ASKED) for shard in shards).compared(QUESTION)
    assert statistics.near is not None
    found = [pair for shard in shards for pair in shard.rank(ASKED, statistics, limit, filter_)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]


@pytest.mark.parametrize("share", [1.0, 0.92])
@pytest.mark.parametrize("shards", [2, 5])
def test_lists_are_equal_for_any_number_of_shards(shards: int, share: float) -> None:
    names = list(TEXTS)
    encoded = set(names[: round(share * len(names))])
    parts = [filled(names[n::shards], encoded) for n in range(shards)]
    assert merged(parts) == merged([filled(names, encoded)])


def test_a_list_depends_on_no_order_and_on_nothing_that_was_removed() -> None:
    names = list(TEXTS)
    shuffled = filled([*reversed(names)], set(names))
    for name in names[::2]:
        shuffled.remove(key_of(name))
    kept = names[1::2]
    assert merged([shuffled]) == merged([filled(kept, set(kept))])


def test_compaction_keeps_every_vector_with_its_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardqa.gears_functions.index.passage_table.COMPACT_DEAD", 10)
    names = list(TEXTS)
    index = filled(names, set(names))
    for name in names[:600]:
        index.remove(key_of(name))
    assert len(index.table.keys) < len(names)
    assert merged([index]) == merged([filled(names[600:], set(names))])


def nearest(stored: bytes) -> float:
    """The cosine of the nearest of these vectors, by whole numbers; where the whole is far, of that."""
    question, halves = np.frombuffer(QUESTION.vector, np.int8).astype(int), np.frombuffer(stored, np.uint8)
    numbers = 2 * np.stack([halves & 15, halves >> 4]).astype(int).reshape(2, -1, HALF) - 15
    sums = [int(one.ravel() @ question) for one in numbers.swapaxes(0, 1)]
    lengths = [float(np.sqrt(np.float32((one**2).sum()))) for one in numbers.swapaxes(0, 1)]
    cosines = [one / (400 * length) for one, length in zip(sums, lengths, strict=True)]
    return max(cosines) if cosines[0] >= vectors.FLOOR else cosines[0]


def test_a_passage_is_as_near_as_the_nearest_of_its_vectors_by_whole_numbers() -> None:
    found = Vectors()
    for slot, name in enumerate(TEXTS):
        found.put(slot, ENCODER, VECTORS[name])
    cosines = found.cosines(ENCODER, QUESTION.vector, len(TEXTS))
    assert cosines.tolist() == [nearest(one) for one in VECTORS.values()]


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=80))
def test_vectors_that_come_and_go_leave_those_that_are_there(changes: list[tuple[int, bool]]) -> None:
    rows, own = Vectors(), dict[int, bytes]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shardqa.gears_functions.index.vectors.FIRST_ROWS", 4)
        for slot, is_put in changes:
            if is_put:
                own[slot] = VECTORS[f"d{slot}"]
                rows.put(slot, ENCODER, own[slot])
            else:
                own.pop(slot, None)
                rows.remove(slot)
    cosines = rows.cosines(ENCODER, QUESTION.vector, 21)
    assert {slot: cosines[slot] for slot in range(21) if not np.isnan(cosines[slot])} == {
        slot: nearest(one) for slot, one in own.items()
    }
    assert rows.counts() == ({ENCODER: len(own)} if own else {})


def test_the_largest_product_is_exact() -> None:
    found, vector = Vectors(), np.full((1, WIDTH), -128, np.int8)
    found.put(0, ENCODER, packed(vector))
    length = np.sqrt(np.float32(WIDTH * 15 * 15))
    assert found.cosines(ENCODER, vector.tobytes(), 1)[0] == WIDTH * 128 * 15 / (400 * float(length))


def test_a_filter_changes_no_score() -> None:
    names = list(TEXTS)
    index = filled(names, set(names))
    for name in names:
        index.catalogue.describe(name, "mill", DocumentInfo(1, "{}"))
    every = dict(merged([index], len(names)))
    assert dict(merged([index], len(names), filters.canonical(DocumentFilter(title="mill")))) == every


def test_what_has_the_words_is_found_however_far_its_vector_is() -> None:
    names = list(TEXTS)
    index = filled(names, set(names))
    with_words = {key for key, _ in index.rank(ASKED, index.statistics(ASKED), len(names))}
    assert with_words <= {key for key, _ in merged([index], len(names))}


def test_a_vector_of_another_text_is_not_taken() -> None:
    index = filled(["d0"], set())
    assert not index.put_vectors(key_of("d0"), StoredVectors(ENCODER, text_digest("mill", "else"), VECTORS["d0"]))
    assert not index.put_vectors(key_of("d1"), stored("d1"))
    assert index.vectors() == {}


def test_a_changed_text_has_no_vector() -> None:
    index = filled(["d0"], {"d0"})
    assert index.without_vector(ENCODER, 5) == []
    index.put(key_of("d0"), "mill", "else")
    assert (index.vectors(), index.without_vector(ENCODER, 5)) == ({}, [key_of("d0")])


def test_a_vector_of_another_encoder_takes_the_place_and_is_not_compared() -> None:
    index = filled(["d0", "d1"], {"d0", "d1"})
    index.put_vectors(key_of("d0"), stored("d0", OTHER))
    assert index.vectors() == {ENCODER: 1, OTHER: 1}
    assert index.statistics(ASKED).compared(QUESTION).near is None


def test_an_explanation_is_the_score_to_the_last_bit() -> None:
    names = list(TEXTS)
    index = filled(names, set(names[10:]))
    statistics = index.statistics(ASKED).compared(QUESTION)
    for key, score in index.rank(ASKED, statistics, 20):
        told = index.explain(key, ASKED, statistics)
        assert told is not None
        assert told["score"] == score
    without = index.explain(key_of("d3"), ASKED, statistics)
    assert without is not None
    assert without["cosine"] is None


def test_vectors_count_once_enough_passages_have_one() -> None:
    few = CorpusStatistics(1_000, 1, 1, 1, {}, {}, {ENCODER: round(ENOUGH * 1_000) - 1})
    enough = CorpusStatistics(1_000, 1, 1, 1, {}, {}, {ENCODER: round(ENOUGH * 1_000)})
    assert few.compared(QUESTION).near is None
    assert enough.compared(QUESTION).near == QUESTION
    assert CorpusStatistics.parse(enough.compared(QUESTION).record()).near == QUESTION


@pytest.mark.parametrize("length", [0, 16, 17, 351, 353, 416, 16 + 257 * 336, 17 + 257 * 192])
def test_a_field_that_is_no_vector_is_none(length: int) -> None:
    assert StoredVectors.unpack(b"\4" * length) is None


def test_vectors_are_kept_in_four_bits_a_number() -> None:
    numbers = np.resize(np.arange(-128, 128), (3, WIDTH)).astype(np.int8)
    kept = StoredVectors.of(ENCODER, "mill", "else", numbers)
    assert StoredVectors.unpack(kept.packed()) == kept
    halves = np.frombuffer(kept.vectors, np.uint8).reshape(3, HALF)
    levels = np.concatenate([halves & 15, halves >> 4], axis=1).astype(int)
    assert abs(6 * levels - 45 - np.clip(numbers, -48, 47)).max() <= 3


def test_vectors_of_seven_bits_are_read() -> None:
    numbers = (np.resize(np.arange(-64, 64), (3, WIDTH)) * 2).astype(np.int8)
    bits = np.unpackbits(numbers.view(np.uint8).reshape(-1, 1), axis=1)[:, :7]
    older = bytes.fromhex(ENCODER) + text_digest("mill", "else") + np.packbits(bits).tobytes()
    assert StoredVectors.unpack(older) == StoredVectors.of(ENCODER, "mill", "else", numbers)


def test_nearness_never_takes_from_a_score_and_grows_with_what_words_can_add() -> None:
    assert vectors.near_score(np.array([-1.0, 0.0]), 9.0).tolist() == [0.0, 0.0]
    assert vectors.near_score(np.array([0.5]), 8.0)[0] == 2 * vectors.near_score(np.array([0.5]), 4.0)[0]


def test_without_a_vector_a_passage_is_as_near_as_its_words_cover_the_question() -> None:
    cosines, words = np.array([0.3, np.nan, np.nan]), np.array([9.0, 9.0, 0.0])
    assert vectors.filled(cosines, words, 9.0).tolist() == [0.3, 1 / vectors.COVERED, 0.0]
