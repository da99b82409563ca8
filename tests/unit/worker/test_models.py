"""Models over the wire: loading, running, batching, and inputs that make no sense."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import ResponseError

from shardqa import tensors
from shardqa.worker import frames
from shardqa.worker.frames import Type
from tests.nodes import wait_until
from tests.unit.worker_client import WorkerClient

onnx = pytest.importorskip("onnx", reason="the models of these tests are made with onnx")
from onnx import TensorProto, helper  # noqa: E402


def model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], **graph: Any) -> bytes:
    made = helper.make_graph(nodes, "test", inputs, outputs, **graph)
    return bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())


def value(name: str, shape: Sequence[Any] | None, type: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, type, shape)


def adder() -> bytes:
    """A model of sum = a + b, difference = a - b, float [n, m]."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    n = ["n", "m"]
    return model(nodes, [value("a", n), value("b", n)], [value("sum", n), value("difference", n)])


def gatherer() -> bytes:
    """A model of row = table[id]: an id past the table's 4 rows fails."""
    table = helper.make_tensor("table", TensorProto.FLOAT, [4], [0.0, 10.0, 20.0, 30.0])
    node = helper.make_node("Gather", ["table", "id"], ["row"])
    return model([node], [value("id", ["n"], TensorProto.INT64)], [value("row", ["n"])], initializer=[table])


def slow() -> bytes:
    """Loops a million times: long enough to be interrupted."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Sin", ["x"], ["y"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("x", ["n"])],
        [value("go_on", [], TensorProto.BOOL), value("y", ["n"])],
    )
    count = helper.make_tensor("count", TensorProto.INT64, [], [1 << 40])
    node = helper.make_node("Loop", ["count", "", "x0"], ["out"], body=body)
    return model([node], [value("x0", ["n"])], [value("out", ["n"])], initializer=[count])


NO_NAMES = frames.pack([])


def load(
    worker: WorkerClient,
    id: str,
    blob: bytes,
    batch: tuple[int, int, int] = (0, 0, 0),
    key: str = "m",
    padded: Sequence[str] = (),
    path: str = "",
    backend: str = "ONNX",
) -> Any:
    numbers = map(str, batch)
    words = (id, backend, "CPU", "", *numbers, key)
    names = frames.pack([name.encode() for name in padded])
    return worker.reply(worker.ask(Type.MODELLOAD, *words, NO_NAMES, NO_NAMES, names, path, blob))


def execute(worker: WorkerClient, id: str, *arrays: Any, outputs: int = 1, timeout: int = 0) -> int:
    encoded = [tensors.encode(array) for array in arrays]
    layout = ";".join(f"{dtype} {shape}" for dtype, shape, _ in encoded)
    return worker.ask(Type.EXECUTE, f"{id} {timeout} {outputs} {layout}", *(data for _, _, data in encoded))


def arrays_of(items: Any) -> list[Any]:
    """Returns the arrays of a TENSORS frame. Raises what came instead."""
    if isinstance(items, Exception):
        raise items
    _microseconds, layout, *data = items
    named = [tensor.partition(" ") for tensor in layout.decode().split(";")]
    return [
        tensors.decode(dtype, tensors.parse_shape(shape.encode()), item)
        for (dtype, _, shape), item in zip(named, data, strict=True)
    ]


def was_cancelled(reply: Any) -> bool:
    """Whether a run was ended, or taken out of the queue when it had not begun."""
    return isinstance(reply, ResponseError) or reply == b"TIMEDOUT"


def floats(*rows: Sequence[float]) -> Any:
    return np.array(rows, np.float32)


def test_a_loaded_model_tells_its_inputs_and_outputs(worker: WorkerClient) -> None:
    assert load(worker, "names", adder()) == [[b"a", b"b"], [b"sum", b"difference"]]


def test_the_file_of_a_model_is_let_go_once_it_is_loaded(worker: WorkerClient) -> None:
    size = 64 << 20  # bytes of a table that nothing uses: loading leaves it out
    unused = helper.make_tensor("unused", TensorProto.INT8, [size], bytes(size), raw=True)
    blob = model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [1])], [value("y", [1])], initializer=[unused])
    load(worker, "0", adder())  # what onnxruntime itself takes comes with the first
    before = resident(worker)
    load(worker, "1", blob)
    assert wait_until(lambda: resident(worker) < before + size // 2, "the memory is free again")


def resident(worker: WorkerClient) -> int:
    """Bytes of the worker that lie in memory."""
    return int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_run_gives_time_and_outputs(worker: WorkerClient) -> None:
    load(worker, "run", adder())
    items = worker.reply(execute(worker, "run", floats([1, 2], [3, 4]), floats([1, 1], [1, 1]), outputs=2))
    assert 0 < int.from_bytes(items[0], "little") < 10e6
    assert [a.tolist() for a in arrays_of(items)] == [[[2, 3], [4, 5]], [[0, 1], [2, 3]]]


@pytest.mark.parametrize(
    ("arrays", "outputs", "text"),
    [
        ([floats([1])], 2, "Number of keys given as INPUTS here does not match model definition"),
        ([floats([1]), floats([1])], 1, "Number of keys given as OUTPUTS here does not match model definition"),
        ([floats([1]), floats([1, 2], [3, 4], [5, 6]), floats([1])], 2, "INPUTS"),
        ([np.array([[1]], np.int64), floats([1])], 2, "Unexpected input data type"),
        ([floats([1, 2, 3]), floats([1, 2])], 2, "Non-zero status code returned while running"),
        ([np.array([1], np.float32), floats([1])], 2, "Invalid rank"),
        ([np.array(["a"], object), floats([1])], 2, "ERR"),
    ],
)
def test_inputs_that_do_not_fit_are_an_error(worker: WorkerClient, arrays: Any, outputs: int, text: str) -> None:
    load(worker, "picky", adder())
    reply = worker.reply(execute(worker, "picky", *arrays, outputs=outputs))
    assert isinstance(reply, ResponseError)
    assert text in str(reply)


@pytest.mark.parametrize("shape", [[1 << 40], [1 << 32, 1 << 32], [1 << 62, 4], [-1], [0]])
def test_an_output_whose_shape_no_memory_has_room_for_is_an_error_of_the_run(
    worker: WorkerClient, shape: list[int]
) -> None:
    filled = model(
        [helper.make_node("ConstantOfShape", ["s"], ["y"])], [value("s", ["n"], TensorProto.INT64)], [value("y", None)]
    )
    load(worker, "filled", filled)
    assert isinstance(worker.reply(execute(worker, "filled", np.array(shape))), ResponseError)
    (right,) = arrays_of(worker.reply(execute(worker, "filled", np.array([2]))))
    assert right.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("dtype", "shape", "data", "text"),
    [
        ("FLOAT", "1,2", b"1234", "data length does not match tensor shape and type"),
        ("FLOAT", "-1", b"", "invalid or negative value found in tensor shape"),
        ("FLOAT", "99999999999,99999999999", b"", "data length does not match"),
        ("FLOAT8", "1", b"12", "invalid data type"),
        ("BOOL", "1", b"\x02", "BOOL tensor elements must be 0 or 1"),
        ("STRING", "2", b"a\0", "Number of string elements"),
        ("STRING", "1", b"a", "Number of string elements"),
    ],
)
def test_bytes_that_are_no_tensor_are_an_error(
    worker: WorkerClient, dtype: str, shape: str, data: bytes, text: str
) -> None:
    load(worker, "bytes", gatherer())
    reply = worker.reply(worker.ask(Type.EXECUTE, f"bytes 0 1 {dtype} {shape}", data))
    assert text in str(reply)


def test_an_output_without_elements_is_an_error_of_the_run(worker: WorkerClient) -> None:
    node = helper.make_node("NonZero", ["x"], ["where"])
    load(worker, "none", model([node], [value("x", ["n"])], [value("where", [1, "m"], TensorProto.INT64)]))
    assert "shape (1,0)" in str(worker.reply(execute(worker, "none", np.zeros(3, np.float32))))
    assert arrays_of(worker.reply(execute(worker, "none", np.ones(1, np.float32))))[0].tolist() == [[0]]


def splitter() -> tuple[Any, Any]:
    """A node that gives x in parts, and that output."""
    parts = helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)
    return helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0), parts


def test_outputs_that_are_sequences_take_a_key_and_give_nothing(worker: WorkerClient) -> None:
    node, parts = splitter()
    negative = helper.make_node("Neg", ["x"], ["y"])
    blob = model([node, negative], [value("x", ["n"])], [parts, value("y", ["n"])])
    assert load(worker, "sequence", blob) == [[b"x"], [b"parts", b"y"]]
    _, layout, *data = worker.reply(execute(worker, "sequence", floats([1])[0], outputs=2))
    assert (layout, data[0], np.frombuffer(data[1], "<f4").tolist()) == (b"NONE ;FLOAT 1", b"", [-1])


def test_a_model_that_gives_sequences_alone_is_refused(worker: WorkerClient) -> None:
    node, parts = splitter()
    assert "gives no tensor" in str(load(worker, "sequences", model([node], [value("x", ["n"])], [parts])))


@pytest.mark.parametrize("type", ["FLOAT16", "UINT32", "UINT64"])
def test_types_that_redis_ai_did_not_have_go_in_and_out(worker: WorkerClient, type: str) -> None:
    number = getattr(TensorProto, type)
    node = helper.make_node("Identity", ["x"], ["y"])
    load(worker, type, model([node], [value("x", ["n"], number)], [value("y", ["n"], number)]))
    (given,) = arrays_of(worker.reply(execute(worker, type, np.array([1, 2], tensors.DTYPES[type]))))
    assert (given.dtype, given.tolist()) == (tensors.DTYPES[type], [1, 2])


def test_a_model_with_a_type_that_redis_has_not_is_refused(worker: WorkerClient) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    blob = model([node], [value("x", ["n"])], [value("y", ["n"], TensorProto.BFLOAT16)])
    assert "output y of the model is a tensor(bfloat16)" in str(load(worker, "bf16", blob))


def test_bfloat16_for_a_model_of_another_type_is_an_error(worker: WorkerClient) -> None:
    load(worker, "no-bf16", adder())
    halves = np.zeros((1, 1), "<u2").view(tensors.BFLOAT16)
    assert isinstance(worker.reply(execute(worker, "no-bf16", halves, halves, outputs=2)), ResponseError)


@pytest.mark.parametrize("rows", [1, 2])
def test_outputs_of_a_fixed_size_are_never_split_between_clients(worker: WorkerClient, rows: int) -> None:
    """The shape of [n, 3] has two elements, whoever asks: cut in two, each would be another client's."""
    node = helper.make_node("Shape", ["x"], ["shape"])
    blob = model([node], [value("x", ["n", 3])], [value("shape", [2], TensorProto.INT64)])
    load(worker, f"shape-{rows}", blob, (8, 2, 200))
    with worker.together():
        asked = [execute(worker, f"shape-{rows}", np.zeros((rows, 3), np.float32)) for _ in range(2)]
    assert [arrays_of(worker.reply(frame))[0].tolist() for frame in asked] == [[rows, 3]] * 2


def test_a_model_that_can_not_be_split_does_not_wait_for_others(worker: WorkerClient) -> None:
    node = helper.make_node("Shape", ["x"], ["shape"])
    blob = model([node], [value("x", ["n", 3])], [value("shape", [2], TensorProto.INT64)])
    load(worker, "alone", blob, (8, 8, 0))
    assert arrays_of(worker.reply(execute(worker, "alone", np.zeros((1, 3), np.float32))))[0].tolist() == [1, 3]


def test_a_run_past_the_limit_of_all_runs_is_ended(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(config=["execution_timeout", "1000"], started=False)
    load(worker, "slow", slow())
    reply = str(worker.reply(execute(worker, "slow", np.ones(4, np.float32))))
    assert "Exiting due to terminate flag being set to true" in reply


def test_runs_of_functions_are_told_to_the_module(worker: WorkerClient) -> None:
    load(worker, "counted", adder(), key="counted")
    code = "import numpy as np\nx = np.ones((3, 2), np.float32)\n"
    code += "async def f(r):\n    await runtime.run_model('counted', {'a': x, 'b': x}, ['sum'])\n"
    worker.execute(code + "GB('CommandReader').map(f).register(trigger='counted', mode='async_local')")
    worker.request("RG.TRIGGER", "counted")
    id, calls, microseconds, samples, errors = worker.wait(
        lambda f: f.type is Type.RAN and f.items()[0] == b"counted"
    ).items()
    assert (id, calls, samples, errors) == (b"counted", b"1", b"3", b"0")
    assert int(microseconds) >= 0


@pytest.mark.parametrize("blob", [b"", b"not a model", adder()[: len(adder()) // 2], b"\x00" * 1000])
def test_bytes_that_are_no_model_are_an_error(worker: WorkerClient, blob: bytes) -> None:
    reply = load(worker, "broken", blob)
    assert isinstance(reply, ResponseError)
    assert str(worker.reply(execute(worker, "broken", floats([1])))) == str(reply)


def test_a_model_that_wants_files_beside_it_is_refused(worker: WorkerClient) -> None:
    table = helper.make_tensor("table", TensorProto.FLOAT, [4], [0.0] * 4)
    table.ClearField("float_data")
    table.data_location = TensorProto.EXTERNAL
    entry = table.external_data.add()
    entry.key, entry.value = "location", "hostname"
    node = helper.make_node("Gather", ["table", "id"], ["row"])
    blob = model([node], [value("id", ["n"], TensorProto.INT64)], [value("row", ["n"])], initializer=[table])
    assert "external data is not allowed" in str(load(worker, "external", blob))


def test_another_backend_is_refused_by_name(worker: WorkerClient) -> None:
    reply = str(load(worker, "tf", b"x", backend="TF"))
    assert reply.startswith("ERR Could not load backend TF: it needs tensorflow, which can't be imported")
    assert "No module named" in worker.log.read_text()


def test_requests_that_wait_run_together_and_each_gets_its_own_rows(worker: WorkerClient) -> None:
    load(worker, "batched", adder(), (8, 8, 5000))
    asked = [execute(worker, "batched", floats([i, i], [i, i]), floats([1, 1], [2, 2]), outputs=2) for i in range(4)]
    for i, frame in enumerate(asked):
        items = worker.reply(frame)
        assert arrays_of(items)[0].tolist() == [[i + 1, i + 1], [i + 2, i + 2]]


def test_shapes_that_differ_do_not_run_together(worker: WorkerClient) -> None:
    load(worker, "shapes", adder(), (8, 2, 5000))
    asked = [execute(worker, "shapes", floats([1.0] * n), floats([1.0] * n), outputs=2) for n in (1, 2, 1, 2)]
    shapes = [arrays_of(worker.reply(frame))[0].shape for frame in asked]
    assert shapes == [(1, 1), (1, 2), (1, 1), (1, 2)]


def test_the_wait_for_a_full_batch_ends(worker: WorkerClient) -> None:
    load(worker, "patient", adder(), (8, 8, 30))
    assert arrays_of(worker.reply(execute(worker, "patient", floats([1]), floats([2]), outputs=2)))[0].tolist() == [[3]]


def test_a_bad_request_in_a_batch_hurts_only_its_sender(worker: WorkerClient) -> None:
    load(worker, "mixed", gatherer(), (8, 3, 5000))
    asked = [execute(worker, "mixed", np.array([id], np.int64)) for id in (1, 99, 2)]
    good, bad, other = map(worker.reply, asked)
    assert isinstance(bad, ResponseError)
    assert [arrays_of(good)[0].tolist(), arrays_of(other)[0].tolist()] == [[10], [20]]


def test_a_request_whose_time_is_over_before_its_run_is_dropped(worker: WorkerClient) -> None:
    load(worker, "late", gatherer(), (8, 2, 0))  # waits for a second row for ever
    first = execute(worker, "late", np.array([1], np.int64), timeout=1)
    time.sleep(0.01)
    others = [execute(worker, "late", np.array([id], np.int64)) for id in (2, 3)]
    assert worker.reply(first) == b"TIMEDOUT"
    assert [arrays_of(worker.reply(frame))[0].tolist() for frame in others] == [[20], [30]]


def test_a_cancelled_run_ends(worker: WorkerClient) -> None:
    load(worker, "slow", slow())
    first = execute(worker, "slow", np.array([1], np.float32))
    second = execute(worker, "slow", np.array([1], np.float32))
    time.sleep(0.1)
    for frame in (second, first):  # the other way round, the second could begin between the two
        worker.send(Type.CANCEL, id=frame)
    assert was_cancelled(worker.reply(first))
    assert worker.reply(second) == b"TIMEDOUT"


def test_several_running_models_do_not_hold_up_another(worker: WorkerClient) -> None:
    for id in ("slow", "slower"):
        load(worker, id, slow())
    load(worker, "m", adder())
    running = [execute(worker, id, np.array([1], np.float32)) for id in ("slow", "slower")]
    assert len(worker.reply(execute(worker, "m", floats([1]), floats([2]), outputs=2))) == 4
    for frame in running:
        worker.send(Type.CANCEL, id=frame)
        assert was_cancelled(worker.reply(frame))


def test_a_model_dropped_while_it_runs_ends_after_the_run(worker: WorkerClient) -> None:
    load(worker, "slow", slow())
    running = execute(worker, "slow", np.array([1], np.float32))
    worker.send(Type.MODELDROP, "slow")
    worker.send(Type.CANCEL, id=running)
    assert was_cancelled(worker.reply(running))
    assert load(worker, "m", adder()) == [[b"a", b"b"], [b"sum", b"difference"]]


def test_a_run_whose_cancellation_comes_with_it_ends(worker: WorkerClient) -> None:
    load(worker, "slow", slow())
    with worker.together():
        running = execute(worker, "slow", np.array([1], np.float32))
        worker.send(Type.CANCEL, id=running)
    assert was_cancelled(worker.reply(running))


def test_functions_run_models_by_name(worker: WorkerClient) -> None:
    load(worker, "named", adder(), key="model:adder:{06S}")
    code = """
import numpy as np
async def f(r):
    a = np.array([[float(x) for x in r[1:]]], np.float32)
    outputs = await runtime.run_model('model:adder:{06S}', {'b': np.ones_like(a), 'a': a}, ['difference'])
    return str(outputs['difference'].tolist())
GB('CommandReader').map(f).register(trigger='named', mode='async_local')
"""
    assert worker.execute(code) == b"OK"
    assert worker.request("RG.TRIGGER", "named", "5", "6") == [b"[[4.0, 5.0]]"]


def test_of_two_models_under_a_key_functions_run_the_one_stored_last_whichever_loads_first(
    worker: WorkerClient,
) -> None:
    code = """
import numpy as np
async def f(r):
    one = np.ones((1, 1), np.float32)
    outputs = await runtime.run_model('k', {'a': one, 'b': one}, ['sum'])
    return str(outputs['sum'].tolist())
GB('CommandReader').map(f).register(trigger='last', mode='async_local')
"""
    worker.execute(code)
    load(worker, "2", adder(), key="k")
    load(worker, "1", slow(), key="k")  # has no such output
    assert worker.request("RG.TRIGGER", "last") == [b"[[2.0]]"]
    worker.send(Type.MODELDROP, "1")
    assert worker.request("RG.TRIGGER", "last") == [b"[[2.0]]"]
    load(worker, "3", slow(), key="k")
    worker.send(Type.MODELDROP, "3")  # it was not kept
    assert worker.request("RG.TRIGGER", "last") == [b"[[2.0]]"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("'nowhere', {'a': x, 'b': x}, ['sum']", "no model nowhere on this shard"),
        ("'faults', {'a': x, 'b': x}, ['product']", "has no output 'product'; it has sum, difference"),
        ("'faults', {'a': x}, ['sum']", "has the inputs a, b, not a"),
        ("'faults', {'a': x, 'b': np.ones((3, 3), np.float32)}, ['sum']", "Non-zero status code"),
    ],
)
def test_a_function_that_runs_a_model_wrongly_gets_an_error(worker: WorkerClient, call: str, text: str) -> None:
    load(worker, "faults", adder(), key="faults")
    code = "import numpy as np\nx = np.ones((1, 2), np.float32)\n"
    code += f"async def f(r):\n    await runtime.run_model({call})\n"
    assert worker.execute(
        code + "GB('CommandReader').map(f).register(trigger='faults', mode='async_local')", "ID", "f", "UPGRADE"
    )
    assert text in str(worker.request("RG.TRIGGER", "faults"))


def test_ready_waits_for_the_models_that_came_before(start_worker: Callable[..., WorkerClient]) -> None:
    worker = start_worker(started=False)
    loading = worker.ask(
        Type.MODELLOAD, "m", "ONNX", "CPU", "", "0", "0", "0", "k", NO_NAMES, NO_NAMES, NO_NAMES, "", adder()
    )
    worker.send(Type.START)
    worker.wait(lambda f: f.type is Type.READY)
    assert any(frame.id == loading and frame.type is Type.REPLY for frame in worker.seen) or worker.reply(loading)
