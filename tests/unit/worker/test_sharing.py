"""Models that share: a run among requests of different lengths, the node among runs, a file among workers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import ResponseError

from shardqa.worker.ai.padding import of_like_lengths
from shardqa.worker.frames import Type
from tests.unit.worker_client import WorkerClient

onnx = pytest.importorskip("onnx", reason="the models of these tests are made with onnx")
from onnx import TensorProto, helper  # noqa: E402

from tests.unit.worker.test_models import (  # noqa: E402
    adder,
    arrays_of,
    execute,
    floats,
    gatherer,
    load,
    model,
    value,
    was_cancelled,
)


def masked(sequence: str | int = "s") -> bytes:
    """A model of kept = ids * mask, float [n, s]; total = the sum of a row, [n, 1]."""
    nodes = [
        helper.make_node("Mul", ["ids", "mask"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axes"], ["total"], keepdims=1),
    ]
    axes, n = helper.make_tensor("axes", TensorProto.INT64, [1], [1]), ["n", sequence]
    inputs, outputs = [value("ids", n), value("mask", n)], [value("kept", n), value("total", ["n", 1])]
    return model(nodes, inputs, outputs, initializer=[axes])


def sequences(*lengths: int) -> list[Any]:
    dice = np.random.default_rng(3)
    return [dice.normal(size=(1, length)).astype(np.float32) for length in lengths]


def test_padded_requests_of_different_lengths_share_a_run(worker: WorkerClient) -> None:
    load(worker, "m", masked(), (8, 4, 0), padded=("ids", "mask"))
    given = sequences(2, 7, 3, 1)
    asked = [execute(worker, "m", ids, np.ones_like(ids), outputs=2) for ids in given]
    replies = [worker.reply(id) for id in asked]
    assert len({items[0] for items in replies}) == 1  # one run, so one time
    for ids, items in zip(given, replies, strict=True):
        kept, total = arrays_of(items)
        assert kept.shape == ids.shape
        assert np.allclose(kept, ids, atol=1e-5)
        assert np.allclose(total, ids.sum(axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "most", "least", "chosen"),
    [
        ([(1, 100), (1, 10), (1, 98)], 8, 0, [0, 2]),  # filling 10 words up to 100 costs more than it saves
        ([(1, 100), (1, 10), (1, 98)], 8, 3, [0, 2, 1]),  # but fewer than MINBATCHSIZE would wait for ever
        ([(1, 100), (2, 100), (1, 99)], 2, 0, [0, 2]),  # at most BATCHSIZE rows
        ([(1, 100), (1, None), (1, 100)], 8, 0, [0, 2]),  # one whose padded inputs differ runs alone
        ([(1, 100)], 8, 0, [0]),
    ],
)
def test_a_padded_run_takes_requests_of_like_lengths(
    sizes: list[tuple[int, int | None]], most: int, least: int, chosen: list[int]
) -> None:
    assert of_like_lengths(sizes, most, least) == chosen


@pytest.mark.parametrize(
    ("blob", "padded", "text"),
    [
        (masked(), ("words",), "PADDED names words, which is no input of the model; it has ids, mask"),
        (masked(9), ("ids",), "whose second dimension is not free"),
        (gatherer(), ("id",), "whose second dimension is not free"),
    ],
)
def test_padded_inputs_that_can_not_be_are_refused(
    worker: WorkerClient, blob: bytes, padded: Sequence[str], text: str
) -> None:
    assert text in str(load(worker, "m", blob, (8, 0, 0), padded=padded))


def looper() -> bytes:
    """Loops as often as its first input says."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Sin", ["x"], ["y"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("x", ["n"])],
        [value("go_on", [], TensorProto.BOOL), value("y", ["n"])],
    )
    node = helper.make_node("Loop", ["count", "", "x0"], ["out"], body=body)
    return model([node], [value("count", [], TensorProto.INT64), value("x0", ["n"])], [value("out", ["n"])])


def test_two_runs_of_a_model_go_on_at_once_where_the_node_says_so(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=["threads_per_queue", "2"], started=False)
    load(worker, "m", looper())
    x = np.zeros(1, np.float32)
    endless = execute(worker, "m", np.array(1 << 40), x)
    for _ in range(20):
        assert arrays_of(worker.reply(execute(worker, "m", np.array(1), x)))[0].tolist() == [0]
    worker.send(Type.CANCEL, id=endless)
    assert was_cancelled(worker.reply(endless))
    worker.send(Type.MODELDROP, "m")
    assert "model key is empty" in str(worker.reply(execute(worker, "m", np.array(1), x)))


def test_a_models_runs_are_told_for_info(worker: WorkerClient) -> None:
    load(worker, "told", adder(), (8, 4, 0), key="a key:{t}")
    asked = [execute(worker, "told", floats([1]), floats([1]), outputs=2) for _ in range(4)]
    assert all(arrays_of(worker.reply(id)) for id in asked)
    frame = worker.wait(lambda f: f.type is Type.STATS and b"model_a_key_{t}" in f.payload)
    items = frame.items()
    told = items[items.index(b"model_a_key_{t}") + 1].decode()
    assert told.startswith("requests=4,errors=0,runs=1,rows=4,mean_batch=4.00,max_batch=4,queue_us=")
    worker.send(Type.MODELDROP, "told")
    worker.wait(lambda f: f.type is Type.STATS and b"model_a_key_{t}\x00\x00\x00\x00" in f.payload)


def weighted() -> bytes:
    """A model of y = x @ w, whose weights have 256 KiB."""
    weights = np.arange(1 << 16, dtype=np.float32).reshape(1 << 8, 1 << 8) / (1 << 16)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    constant = onnx.numpy_helper.from_array(weights, "w")
    return model([node], [value("x", ["n", 1 << 8])], [value("y", ["n", 1 << 8])], initializer=[constant])


@pytest.fixture
def reader(start_worker: Callable[..., WorkerClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerClient:
    """A worker that may read the test's folder."""
    monkeypatch.setenv("SHARDQA_READABLE", str(tmp_path))
    return start_worker(started=False)


def test_a_model_in_a_file_is_mapped_and_computes_the_same(reader: WorkerClient, tmp_path: Path) -> None:
    path = tmp_path / "large.model"
    path.write_bytes(weighted())
    x = np.ones((2, 1 << 8), np.float32)
    load(reader, "memory", weighted(), key="memory")
    assert load(reader, "file", b"", key="file", path=str(path)) == [[b"x"], [b"y"]]
    assert str(path) in Path(f"/proc/{reader.pid}/maps").read_text()
    expected, found = (arrays_of(reader.reply(execute(reader, id, x)))[0] for id in ("memory", "file"))
    assert np.allclose(expected, found, rtol=1e-5)


def test_a_file_that_is_no_model_is_refused(reader: WorkerClient, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    for content in (None, b"", b"no model", weighted()[:-5], b"\x3a\xff\xff\xff\xff\x7f", b"\xff" * 12):
        if content is not None:
            path.write_bytes(content)
        reply = load(reader, "bad", b"", path=str(path))
        assert isinstance(reply, ResponseError)
        assert not content or "can't be read" in str(reply) or "odel" in str(reply)
