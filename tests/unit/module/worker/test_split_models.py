"""Split readers in the worker: what is kept of passages changes no bit of what is read, and is never another's."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import ResponseError

from shardqa.models.reader import Batch, Row, batches, join, passage_part
from shardqa.module.worker.ai import backend, stored_states
from shardqa.module.worker.ai.array_cache import ENTRY_BYTES, ArrayCache
from shardqa.module.worker.ai.backend import File, Model, ModelError, OnnxModel
from shardqa.module.worker.ai.batching import EncodedPassage, StatesModel
from shardqa.module.worker.frames import Type
from tests.unit import tiny
from tests.unit.tiny_models import tiny_config
from tests.unit.worker_client import WorkerClient

onnx = pytest.importorskip("onnx", reason="the models of these tests are made with onnx")

from shardqa.models.split import SPLIT_AT, SplitSession  # noqa: E402
from shardqa.models.toolchain.conversion.graph import (  # noqa: E402
    BertShape,
    FloatLayers,
    Weights,
    bert_reader,
    lower_network,
    upper_network,
)
from shardqa.models.toolchain.splitting import read_packed  # noqa: E402
from tests.unit.module.worker.test_models import arrays_of, execute, load  # noqa: E402

LAYERS = 3
WEIGHTS, OTHERS = tiny.weights(LAYERS, 0), tiny.weights(LAYERS, 1)
CONFIG = tiny_config(
    ((tiny.HEADS, tiny.WIDTH),) * LAYERS,
    intermediate_size=tiny.WIDTH,
    vocab_size=tiny.VOCABULARY,
    max_position_embeddings=tiny.POSITIONS,
    split_layers=2,
)
SHAPE = BertShape.of(CONFIG)
PLENTY = 1 << 30
Logits = list[tuple[Any, Any]]


def split_reader(weights: Weights = WEIGHTS) -> bytes:
    return bytes(bert_reader(weights, SHAPE, FloatLayers()).SerializeToString())


def loaded(blob: bytes, kept: ArrayCache) -> Model:
    return backend.load(File("ONNX", "CPU", blob), 1, None, kept)  # type: ignore[arg-type] # no script, so no reach


def rows(seed: int = 0) -> list[Row]:
    """Two questions, each with passages of several lengths, one of them the same."""
    dice = np.random.default_rng(seed)

    def words(count: int) -> Any:
        return dice.integers(1000, tiny.VOCABULARY, count).astype(np.int32)

    both = words(37)
    return [join(words(length), both) for length in (4, 11)] + [
        join(words(9), words(length)) for length in (20, 41, 90)
    ]


def read(model: Model, given: Sequence[Row], max_rows: int = 16) -> Logits:
    found: dict[int, tuple[Any, Any]] = {}
    for batch in batches(given, max_rows):
        starts, ends = run(model, batch)
        for line, number in enumerate(batch.rows):
            found[number] = starts[line, : len(given[number])], ends[line, : len(given[number])]
    return [found[number] for number in range(len(given))]


def run(model: Model, batch: Batch) -> list[Any]:
    feeds = batch.feeds()
    return model.run([feeds[name] for name in model.inputs], model.options())


def are_same_bits(one: Logits, other: Logits) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a, b) for pair in pairs for a, b in zip(*pair, strict=True))


def numbers(cache: ArrayCache) -> dict[str, int]:
    told = {name.removeprefix("states_"): number for name, number in cache.numbers().items()}
    return told or dict.fromkeys(("kept", "bytes", "limit", "hits", "misses", "evictions", "encoded", "read_back"), 0)


def test_it_is_an_onnx_reader_like_any_other() -> None:
    model = loaded(split_reader(), ArrayCache(PLENTY))
    assert model.inputs == ["input_ids", "attention_mask", "token_type_ids"]
    assert (model.outputs, model.splits) == (["start_logits", "end_logits"], True)
    assert OnnxModel(File("ONNX", "CPU", split_reader()), 1).outputs == model.outputs


@pytest.mark.parametrize("bytes_", [PLENTY, 20_000, 0])
def test_kept_states_change_no_bit_of_the_logits(bytes_: int) -> None:
    kept = ArrayCache(bytes_)
    model = loaded(split_reader(), kept)
    first = read(model, rows())
    assert are_same_bits(read(model, rows()), first)
    assert are_same_bits(read(model, rows()[::-1])[::-1], first)
    assert are_same_bits(read(loaded(split_reader(), ArrayCache(PLENTY)), rows()), first)


def test_the_logits_are_those_of_both_networks_with_packed_states() -> None:
    parts = (written(WEIGHTS, SHAPE, FloatLayers()).SerializeToString() for written in (lower_network, upper_network))
    wanted = read_packed(SplitSession(*parts), rows())
    for pair, other in zip(read(loaded(split_reader(), ArrayCache(PLENTY)), rows()), wanted, strict=True):
        for one, another in zip(pair, other, strict=True):
            np.testing.assert_allclose(one, another, atol=1e-5)


def test_a_row_has_the_same_bits_alone_and_in_company() -> None:
    model = loaded(split_reader(), ArrayCache(0))
    assert are_same_bits(read(model, rows(), max_rows=1), read(model, rows()))


def test_a_passage_is_computed_once_for_all_questions() -> None:
    kept = ArrayCache(PLENTY)
    model = loaded(split_reader(), kept)
    read(model, rows())
    assert (numbers(kept)["kept"], numbers(kept)["misses"], numbers(kept)["hits"]) == (4, 4, 1)
    read(model, rows())
    assert (numbers(kept)["kept"], numbers(kept)["misses"], numbers(kept)["hits"]) == (4, 4, 6)


def test_states_are_never_another_models() -> None:
    kept = ArrayCache(PLENTY)
    one, other = (loaded(split_reader(weights), kept) for weights in (WEIGHTS, OTHERS))
    read(one, rows())
    assert are_same_bits(read(other, rows()), read(loaded(split_reader(OTHERS), ArrayCache(PLENTY)), rows()))
    assert numbers(kept)["kept"] == 8


def test_states_are_never_another_texts() -> None:
    model = loaded(split_reader(), ArrayCache(PLENTY))
    before = rows()[3]
    read(model, [before])
    after = Row(before.input_ids.copy(), before.token_type_ids, before.passage)
    after.input_ids[before.passage.start] += 1
    assert are_same_bits(read(model, [after]), read(loaded(split_reader(), ArrayCache(0)), [after]))


def test_a_model_that_is_loaded_again_finds_what_it_kept() -> None:
    kept = ArrayCache(PLENTY)
    read(loaded(split_reader(), kept), rows())
    read(loaded(split_reader(), kept), rows())
    assert (numbers(kept)["kept"], numbers(kept)["misses"]) == (4, 4)


def irregular() -> list[Batch]:
    """Rows that are no question with a passage: one type alone, and a hole in the mask."""
    ids = np.random.default_rng(1).integers(1000, tiny.VOCABULARY, (1, 24))
    ones, types = np.ones_like(ids), np.zeros_like(ids)
    types[:, 9:] = 1
    holed = ones.copy()
    holed[:, 5] = 0
    return [Batch((0,), ids, ones, ones * 0), Batch((0,), ids, ones, ones), Batch((0,), ids, holed, types)]


@pytest.mark.parametrize("batch", irregular())
def test_other_rows_are_read_as_the_file_in_one_piece_reads_them(batch: Batch) -> None:
    kept = ArrayCache(PLENTY)
    whole = run(OnnxModel(File("ONNX", "CPU", split_reader()), 1), batch)
    for one, another in zip(run(loaded(split_reader(), kept), batch), whole, strict=True):
        np.testing.assert_allclose(one, another, atol=1e-5)
    assert not kept.numbers()


def test_a_row_of_another_kind_changes_nothing_for_its_neighbours() -> None:
    model, odd = loaded(split_reader(), ArrayCache(PLENTY)), irregular()[2]
    (good,) = batches([join(np.full(7, 1_005, np.int32), np.full(14, 1_007, np.int32))])
    pairs = ((good.input_ids, odd.input_ids), (good.attention_mask, odd.attention_mask))
    mixed = Batch((0, 1), *map(np.concatenate, (*pairs, (good.token_type_ids, odd.token_type_ids))))
    both, alone, other = run(model, mixed), run(model, good), run(model, odd)
    for joint, one, another in zip(both, alone, other, strict=True):
        assert np.array_equal(joint, np.concatenate([one, another]))


def test_states_that_are_not_finite_are_not_kept() -> None:
    bias = "bert.encoder.layer.1.output.LayerNorm.bias"
    broken = {**WEIGHTS, bias: WEIGHTS[bias] * np.float32(np.nan)}
    kept = ArrayCache(PLENTY)
    (starts, _), *_ = read(loaded(split_reader(broken), kept), rows())
    assert not np.isfinite(starts).any()
    assert numbers(kept)["kept"] == 0


def test_wrong_inputs_are_named_as_of_any_model() -> None:
    model = loaded(split_reader(), ArrayCache(PLENTY))
    ids = np.ones((1, 8), np.int64)
    cases: list[tuple[list[Any], str]] = [
        ([ids], "Number of keys given as INPUTS"),
        ([ids.astype(np.float32), ids, ids], "Unexpected input data type"),
        ([ids[0], ids[0], ids[0]], "Invalid rank"),
        ([np.full_like(ids, 1 << 40), ids, ids], "indices element out of data bounds"),
    ]
    for arrays, text in cases:
        with pytest.raises(ModelError, match=text):
            model.run(arrays, model.options())


def marked(blob: bytes, value: str) -> bytes:
    made = onnx.load_from_string(blob)
    onnx.helper.set_model_props(made, {SPLIT_AT: value})
    return bytes(made.SerializeToString())


def plain(blob: bytes) -> bytes:
    made = onnx.load_from_string(blob)
    onnx.helper.set_model_props(made, {"author": "somebody"})
    return bytes(made.SerializeToString())


def renamed(blob: bytes) -> bytes:
    return blob.replace(b"token_type_ids", b"token_type_idx")


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (marked(split_reader(), "hidden.9"), "split at 'hidden.9', and makes no such value"),
        (marked(split_reader(), "types.same"), "Type Error"),
        (marked(split_reader(), "absent.float"), r"sizes are .* and not \[rows, tokens, a number\]"),
        (renamed(split_reader()), "its inputs are input_ids, attention_mask, token_type_idx and not"),
    ],
)
def test_a_file_that_can_not_be_cut_where_it_says_is_refused(blob: bytes, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        loaded(blob, ArrayCache(PLENTY))


def test_a_file_that_says_other_things_is_not_cut() -> None:
    assert isinstance(loaded(plain(split_reader()), ArrayCache(PLENTY)), OnnxModel)


def test_no_damaged_file_ends_the_worker() -> None:
    blob = marked(split_reader(), "hidden.2")
    dice = np.random.default_rng(0)
    for place in dice.integers(0, len(blob), 60):
        with suppress(ModelError):
            loaded(blob[:place], ArrayCache(PLENTY))
        with suppress(ModelError):
            loaded(blob[:place] + bytes([int(dice.integers(256))]) + blob[place + 1 :], ArrayCache(PLENTY))


# ---- before a question asks


def encode(model: Model, given: Sequence[Row], value: bytes | None = None) -> list[EncodedPassage | None]:
    assert isinstance(model, StatesModel)
    parts = [passage_part(row.input_ids[row.passage].astype(np.int32)) for row in given]
    return [model.encode(part, value, model.options()) for part in parts]


def value_of(model: Model, row: Row) -> bytes:
    """What is to be stored of a row's passage."""
    (found,) = encode(model, [row], b"")
    assert found is not None
    return found.to_store


def test_what_was_stored_is_read_back_and_has_the_same_bits() -> None:
    value, kept = value_of(loaded(split_reader(), ArrayCache(PLENTY)), rows()[4]), ArrayCache(PLENTY)
    model = loaded(split_reader(), kept)
    (found,) = encode(model, rows()[4:], value)
    assert found is not None
    assert found.to_store == b""
    assert are_same_bits(read(model, rows()[4:]), read(loaded(split_reader(), ArrayCache(0)), rows()[4:]))
    assert numbers(kept) == {**numbers(kept), "read_back": 1, "encoded": 0, "misses": 0, "hits": 1}


def test_what_is_kept_already_can_be_stored() -> None:
    model = loaded(split_reader(), ArrayCache(PLENTY))
    read(model, rows())
    assert value_of(model, rows()[4]) == value_of(loaded(split_reader(), ArrayCache(PLENTY)), rows()[4])
    assert [one and one.to_store for one in encode(model, rows())] == [b""] * 5


@pytest.mark.parametrize("whose", ["another model's", "another text's", "nobody's"])
def test_what_was_stored_of_anything_else_is_computed_and_stored_anew(whose: str) -> None:
    other = loaded(split_reader(OTHERS if whose == "another model's" else WEIGHTS), ArrayCache(PLENTY))
    value = b"nothing" if whose == "nobody's" else value_of(other, rows()[3 if whose == "another text's" else 4])
    kept = ArrayCache(PLENTY)
    (found,) = encode(loaded(split_reader(), kept), rows()[4:], value)
    assert found is not None
    assert found.to_store == value_of(loaded(split_reader(), ArrayCache(PLENTY)), rows()[4])
    assert (numbers(kept)["encoded"], numbers(kept)["read_back"]) == (1, 0)


def test_damaged_states_are_never_read() -> None:
    model = loaded(split_reader(), ArrayCache(PLENTY))
    (found,) = encode(model, rows()[2:3], b"")
    assert found is not None
    value = found.to_store
    assert stored_states.loaded(found.key, value) is not None
    for place in range(len(value)):
        assert stored_states.loaded(found.key, value[:place]) is None
        changed = value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
        assert stored_states.loaded(found.key, changed) is None
    assert stored_states.loaded(found.key, value + b"x") is None


def test_what_was_encoded_ahead_has_the_bits_of_what_is_computed_on_first_use() -> None:
    kept = ArrayCache(PLENTY)
    model = loaded(split_reader(), kept)
    encode(model, rows())
    assert are_same_bits(read(model, rows()), read(loaded(split_reader(), ArrayCache(PLENTY)), rows()))
    assert numbers(kept) == {**numbers(kept), "encoded": 4, "hits": 5, "misses": 0}


def test_what_is_kept_already_is_not_encoded_again() -> None:
    kept = ArrayCache(PLENTY)
    model = loaded(split_reader(), kept)
    read(model, rows())
    assert None not in encode(model, rows())
    assert numbers(kept)["encoded"] == 0


def test_encoding_puts_out_nothing_and_ends_where_there_is_no_room() -> None:
    kept = ArrayCache(4_000)
    model = loaded(split_reader(), kept)
    read(model, rows()[:1])
    assert encode(model, rows()[4:]) == [None]
    assert None not in encode(model, rows()[2:3])
    assert numbers(kept) == {**numbers(kept), "kept": 2, "encoded": 1, "evictions": 0}


def test_where_nothing_may_be_kept_nothing_is_encoded() -> None:
    kept = ArrayCache(0)
    assert encode(loaded(split_reader(), kept), rows()) == [None] * 5
    assert not kept.numbers()


# ---- the cache


def arrays(size: int) -> tuple[Any, ...]:
    return (np.zeros(size - ENTRY_BYTES, np.int8),)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = ArrayCache(3_000)
    for key in (b"a", b"b", b"c"):
        cache.put(key, arrays(1_000))
    assert cache.get(b"a") is not None
    cache.put(b"d", arrays(1_000))
    assert [key for key in (b"a", b"b", b"c", b"d") if cache.get(key) is None] == [b"b"]
    assert (numbers(cache)["bytes"], numbers(cache)["evictions"]) == (3_000, 1)


def test_what_is_larger_than_all_that_may_be_kept_is_not_kept() -> None:
    cache = ArrayCache(3_000)
    cache.put(b"small", arrays(1_000))
    cache.put(b"large", arrays(3_001))
    assert cache.get(b"large") is None
    assert cache.get(b"small") is not None


def test_what_nobody_asked_for_makes_room_first() -> None:
    cache = ArrayCache(3_000)
    cache.put(b"a", arrays(1_000))
    assert cache.offer(b"b", arrays(1_000))
    assert cache.offer(b"c", arrays(1_000))
    assert not cache.offer(b"d", arrays(1_000))
    assert cache.get(b"b") is not None
    cache.put(b"e", arrays(1_000))
    cache.put(b"f", arrays(1_000))
    assert [key for key in (b"a", b"b", b"c", b"e", b"f") if cache.peek(key) is None] == [b"a", b"c"]


def test_what_is_forgotten_leaves_its_room() -> None:
    cache = ArrayCache(1_000)
    assert cache.offer(b"a", arrays(1_000))
    cache.forget([b"a", b"never there"])
    assert cache.offer(b"b", arrays(1_000))
    assert numbers(cache) == {**numbers(cache), "kept": 1, "bytes": 1_000, "encoded": 2, "evictions": 0}


def test_the_same_twice_counts_once() -> None:
    cache = ArrayCache(3_000)
    for _ in range(4):
        cache.put(b"a", arrays(1_000))
    assert cache.get(b"a") is not None
    assert (numbers(cache)["kept"], numbers(cache)["bytes"], numbers(cache)["evictions"]) == (1, 1_000, 0)


# ---- over the wire


def fed(row: Row) -> list[Any]:
    return [one[None] for one in (row.input_ids, row.attention_mask, row.token_type_ids)]


def test_the_worker_tells_what_it_keeps(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=["states_bytes", "8000"])
    worker.start()
    load(worker, "split", split_reader())
    first = [arrays_of(worker.reply(execute(worker, "split", *fed(row), outputs=2))) for row in rows()]
    again = [arrays_of(worker.reply(execute(worker, "split", *fed(row), outputs=2))) for row in rows()]
    assert are_same_bits([tuple(one) for one in first], [tuple(one) for one in again])
    told = states_told(worker, b"10")
    assert told[b"states_limit"] == b"8000"
    assert 0 < int(told[b"states_bytes"]) <= 8_000
    assert int(told[b"states_evictions"]) > 0
    assert int(told[b"states_kept"]) > 0


def states_told(worker: WorkerClient, asked: bytes) -> dict[bytes, bytes]:
    """Once so many passages were asked for."""

    def is_all(items: list[bytes]) -> bool:
        told = dict(zip(items[::2], items[1::2], strict=True))
        return int(told.get(b"states_hits", b"0")) + int(told.get(b"states_misses", b"0")) == int(asked)

    items = worker.wait(lambda f: f.type is Type.STATS and is_all(f.items())).items()
    return dict(zip(items[::2], items[1::2], strict=True))


def test_padded_requests_of_a_split_reader_share_a_run(worker: WorkerClient) -> None:
    padded = ("input_ids", "attention_mask", "token_type_ids")
    load(worker, "padded", split_reader(), (8, 2, 0), padded=padded)
    near = [join(np.full(5, 1_001, np.int32), np.full(length, 1_002, np.int32)) for length in (30, 31)]
    asked = [execute(worker, "padded", *fed(row), outputs=2) for row in near]
    replies = [worker.reply(id) for id in asked]
    assert len({items[0] for items in replies}) == 1  # one run, so one time
    alone = read(loaded(split_reader(), ArrayCache(0)), near)
    assert are_same_bits([tuple(arrays_of(items)[:2]) for items in replies], lined(alone))


def lined(logits: Logits) -> Logits:
    return [(start[None], end[None]) for start, end in logits]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A split reader in a file that a worker may read."""
    monkeypatch.setenv("SHARDQA_READABLE", str(tmp_path))
    path = tmp_path / "large.model"
    path.write_bytes(split_reader())
    return path


def test_a_split_reader_in_a_file_reads_the_same(start_worker: Callable[..., WorkerClient], file: Path) -> None:
    worker = start_worker(config=["states_bytes", "1000000"])
    load(worker, "memory", split_reader(), key="memory")
    reply = load(worker, "file", b"", key="file", path=str(file))
    assert not isinstance(reply, ResponseError)
    for _ in range(2):
        for row in rows():
            one, other = (
                arrays_of(worker.reply(execute(worker, id, *fed(row), outputs=2))) for id in ("memory", "file")
            )
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-4)
