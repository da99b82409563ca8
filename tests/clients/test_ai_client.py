"""The typed client of AI.*: on one node in RESP3, on a cluster in RESP2."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import Redis, RedisCluster

from shardqa import ai
from shardqa.cluster.local import LocalCluster
from shardqa.tensors import DTYPES, Array
from tests.nodes import Node

pytest.importorskip("onnx", reason="the model of this test is made with onnx")
from tests.onnx_models import adder

A, B = np.array([1, 2], np.float32), np.array([3, 4], np.float32)


@pytest.fixture(scope="module", params=["node", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "node":
        node: Node = request.getfixturevalue("redis_node")
        return f"redis://127.0.0.1:{node.port}?protocol=3"
    cluster: LocalCluster = request.getfixturevalue("bare_cluster")
    return f"redis://{cluster.seed()}?protocol=2"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[ai.Client]:
    """With a model at aic:{m}."""
    with ai.Client.connect(url, socket_timeout=120) as client:
        client.model_store("aic:{m}", "ONNX", adder(), tag="v1", batch_size=8)
        yield client


def test_connect_finds_out_whether_it_is_a_cluster(client: ai.Client, url: str, request: pytest.FixtureRequest) -> None:
    assert isinstance(client._shards.redis, RedisCluster if "cluster" in request.node.callspec.id else Redis)


@pytest.mark.parametrize(
    "array",
    [
        *(np.arange(6).reshape(2, 3).astype(DTYPES[name]) for name in sorted(set(DTYPES) - {"BFLOAT16"})),
        np.array(["å", "", "c"], object),
        np.array(2.5),
    ],
    ids=lambda array: str(array.dtype),
)
def test_an_array_comes_back_as_it_went(client: ai.Client, array: Array) -> None:
    client.tensor_set("aic:{t}", array)
    back = client.tensor_get("aic:{t}")
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_a_model_runs_on_keys_and_on_arrays_in_one_command(client: ai.Client) -> None:
    client.reset_info("aic:{m}")
    client.tensor_set("aic:a{m}", A)
    client.tensor_set("aic:b{m}", B)
    client.model_execute("aic:{m}", ["aic:a{m}", "aic:b{m}"], ["aic:c{m}"], timeout_ms=20000)
    assert client.tensor_get("aic:c{m}").tolist() == [4, 6]
    statistics = client.info("aic:{m}")
    assert (statistics.kind, statistics.calls, statistics.samples, statistics.errors) == ("MODEL", 1, 2, 0)
    (total,) = client.run("aic:{m}", [A, B])
    assert total.tolist() == [4, 6]


def test_a_model_tells_what_it_is(client: ai.Client) -> None:
    stored = client.model_get("aic:{m}", blob=True)
    assert (stored.backend, stored.device, stored.tag, stored.batch_size) == ("ONNX", "CPU", "v1", 8)
    assert (stored.inputs, stored.outputs, stored.blob) == (["a", "b"], ["sum"], adder())
    assert ("aic:{m}", "v1") in client.model_scan()


def test_a_file_is_stored_from_its_path(client: ai.Client, tmp_path: Path) -> None:
    path = tmp_path / "adder.onnx"
    path.write_bytes(adder())
    client.model_store("aic:{file}", "ONNX", path)
    assert client.run("aic:{file}", [A, A])[0].tolist() == [2, 4]
    client.model_delete("aic:{file}")
    with pytest.raises(ai.NoSuchModel):
        client.model_get("aic:{file}")


def test_padded_inputs_are_named_and_told(client: ai.Client) -> None:
    with pytest.raises(ai.ModelRefused, match="PADDED names a, whose second dimension is not free"):
        client.model_store("aic:{padded}", "ONNX", adder(), batch_size=8, padded=["a"])
    assert client.model_get("aic:{m}").padded == []


def test_a_long_file_goes_in_parts(client: ai.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardqa.streaming.PART", 64)
    client.model_store("aic:{parts}", "ONNX", adder())
    assert client.model_get("aic:{parts}", blob=True).blob == adder()


def test_a_graph_gives_what_its_operations_gave(client: ai.Client) -> None:
    client.tensor_set("aic:a{m}", A)
    graph = client.graph(load=["aic:a{m}"], persist=["aic:z{m}"])
    graph.tensor_set("t", B).model_execute("aic:{m}", ["aic:a{m}", "t"], ["aic:z{m}"]).tensor_get("aic:z{m}")
    first, second, array = graph.run()
    assert (first, second) == (None, None)
    assert array is not None
    assert array.tolist() == [4, 6]
    assert client.tensor_get("aic:z{m}").tolist() == [4, 6]


def test_a_graph_that_fails_tells_what_each_operation_gave(client: ai.Client) -> None:
    graph = client.graph(read_only=True).tensor_set("t", A).tensor_set("u", np.ones(3, np.float32))
    with pytest.raises(ai.RunFailed) as caught:
        graph.model_execute("aic:{m}", ["t", "u"], ["z"]).tensor_get("z").run()
    assert caught.value.results is not None
    assert caught.value.results[0] == b"OK"
    assert caught.value.results[-1] == b"NA"


def test_settings_are_read_and_set(client: ai.Client) -> None:
    before = client.config_get("MODEL_CHUNK_SIZE")
    assert isinstance(before, int)
    client.config_set("MODEL_CHUNK_SIZE", before - 1)
    assert client.config_get("MODEL_CHUNK_SIZE") == before - 1
    client.config_set("MODEL_CHUNK_SIZE", before)
    assert client.config_get("nonsense") is None


Act = Callable[[ai.Client], Any]


@pytest.mark.parametrize(
    ("fault", "act"),
    [
        (ai.NoSuchTensor, lambda c: c.tensor_get("aic:{none}")),
        (ai.NoSuchModel, lambda c: c.run("aic:{none}", [A])),
        (ai.NoSuchModel, lambda c: c.info("aic:{none}")),
        (ai.NoSuchScript, lambda c: c.script_get("aic:{none}")),
        (ai.WrongKind, lambda c: c.tensor_get("aic:{m}")),
        (ai.ModelRefused, lambda c: c.model_store("aic:{bad}", "ONNX", b"no model")),
        (ai.BackendUnavailable, lambda c: c.model_store("aic:{bad}", "CAFFE", b"x")),
        (ai.BackendUnavailable, lambda c: c.model_store("aic:{bad}", "ONNX", adder(), device="GPU:3")),
        (ai.BadCall, lambda c: c.config_set("nonsense", 1)),
        (ai.RunFailed, lambda c: c.run("aic:{m}", [A, np.ones(3, np.float32)])),
        (ai.RunFailed, lambda c: c.model_execute("aic:{m}", ["aic:a{m}"], ["aic:c{m}"])),
        (ai.BadTensor, lambda c: c.tensor_set("aic:{t}", np.ones(2, np.complex64))),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_is_a_class(client: ai.Client, fault: type[Exception], act: Act) -> None:
    client.tensor_set("aic:a{m}", A)
    with pytest.raises(fault):
        act(client)


@pytest.mark.parametrize("method", ["model_store", "script_execute"])
def test_a_keyword_that_does_not_exist_is_refused(client: ai.Client, method: str) -> None:
    with pytest.raises(TypeError, match="batchsize does not exist"):
        getattr(client, method)("aic:{m}", "f", *([b""] if method == "model_store" else []), batchsize=3)


def test_a_server_without_the_module_is_told_apart(start_node: Callable[..., Node]) -> None:
    node = start_node(module=None)
    with ai.Client.connect(f"redis://127.0.0.1:{node.port}") as client, pytest.raises(ai.ModuleMissing):
        client.tensor_get("t")


def test_a_node_that_is_away_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardqa.worker.client.calls.PAUSES", ())
    with pytest.raises(ai.ShardAway):
        ai.Client.connect("redis://127.0.0.1:1")
    with pytest.raises(ai.ShardAway):
        ai.Client(Redis(port=1)).tensor_get("t")


def test_a_client_that_decodes_replies_serves_as_well(redis_node: Node) -> None:
    client = ai.Client(redis_node.client(decode_responses=True))
    client.tensor_set("aic:d", np.array([255, 254], np.uint8))
    assert client.tensor_get("aic:d").tolist() == [255, 254]


def test_scripts_are_stored_run_and_told(client: ai.Client) -> None:
    pytest.importorskip("torch", reason="TorchScript is torch's")
    source = "def add(tensors: List[Tensor], keys: List[str], args: List[str]):\n    return tensors[0] + tensors[1]\n"
    client.script_store("aic:s{m}", source, ["add"], tag="one")
    client.tensor_set("aic:a{m}", A)
    client.script_execute("aic:s{m}", "add", inputs=["aic:a{m}", "aic:a{m}"], outputs=["aic:c{m}"])
    assert client.tensor_get("aic:c{m}").tolist() == [2, 4]
    found = client.script_get("aic:s{m}")
    assert (found.device, found.tag, found.entry_points, found.source) == ("CPU", "one", ["add"], source)
    assert ("aic:s{m}", "one") in client.script_scan()
    client.script_delete("aic:s{m}")
    assert ("aic:s{m}", "one") not in client.script_scan()


async def test_the_asyncio_client_does_the_same(url: str) -> None:
    async with await ai.AsyncClient.connect(url) as client:
        await client.model_store("aic:n{m}", "ONNX", adder(), tag="v2")
        await client.tensor_set("aic:n{t}", A)
        assert np.array_equal(await client.tensor_get("aic:n{t}"), A)
        arrays: list[Array] = await client.run("aic:n{m}", [A, B])
        assert arrays[0].tolist() == [4, 6]
        graph = client.graph().tensor_set("t", A).model_execute("aic:n{m}", ["t", "t"], ["z"]).tensor_get("z")
        results = await graph.run()
        assert results[-1] is not None
        assert results[-1].tolist() == [2, 4]
        assert ("aic:n{m}", "v2") in await client.model_scan()
        await client.config_set("MODEL_CHUNK_SIZE", await client.config_get("MODEL_CHUNK_SIZE") or 1)
        assert (await client.info("aic:n{m}")).errors == 0
        with pytest.raises(ai.NoSuchModel):
            await client.model_get("aic:{none}")
        await client.model_delete("aic:n{m}")


async def test_a_client_that_is_out_of_date_follows_where_a_slot_went(bare_cluster: LocalCluster) -> None:
    """Each client sends files in its own way; the rest of the one that blocks is generated from the other."""
    url = f"redis://{bare_cluster.seed()}"

    def mislead(client: Any) -> None:
        redis = client._shards.redis
        slot, owners = redis.keyslot("aic:{moved}"), redis.nodes_manager.slots_cache
        owners[slot] = [next(node for node in redis.get_primaries() if node != owners[slot][0])]

    with ai.Client.connect(url) as client:
        client.model_store("aic:{moved}", "ONNX", adder())
        for act in (
            lambda: client.run("aic:{moved}", [A, B]),
            lambda: client.model_get("aic:{moved}"),
            lambda: client.model_store("aic:{moved}", "ONNX", adder(), tag="sent after it"),
        ):
            mislead(client)
            act()
        assert client.model_get("aic:{moved}").tag == "sent after it"
    async with await ai.AsyncClient.connect(url) as other:
        mislead(other)
        await other.model_store("aic:{moved}", "ONNX", adder(), tag="sent by the other")
        assert (await other.model_get("aic:{moved}")).tag == "sent by the other"


@pytest.fixture
def leaving(bare_cluster: LocalCluster) -> Iterator[str]:
    """A key whose slot is on its way to another shard."""
    with RedisCluster.from_url(f"redis://{bare_cluster.seed()}") as cluster:
        slot, old = cluster.keyslot("{leaving}"), cluster.get_node_from_key("{leaving}")
        new = next(node for node in cluster.get_primaries() if node != old)
        source, target = cluster.get_redis_connection(old), cluster.get_redis_connection(new)
        ids = [one.execute_command("CLUSTER MYID").decode() for one in (source, target)]
        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[0])
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[1])
        try:
            yield "aic:{leaving}"
        finally:
            for node in (source, target):
                node.execute_command("CLUSTER SETSLOT", slot, "STABLE")


async def test_a_file_for_a_slot_that_is_leaving_is_to_be_sent_again(
    bare_cluster: LocalCluster, leaving: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"redis://{bare_cluster.seed()}"
    monkeypatch.setattr("shardqa.worker.client.calls.PAUSES", ())
    with ai.Client.connect(url) as client, pytest.raises(ai.ShardAway, match="moving"):
        client.model_store(leaving, "ONNX", adder())
    async with await ai.AsyncClient.connect(url) as other:
        with pytest.raises(ai.ShardAway, match="moving"):
            await other.model_store(leaving, "ONNX", adder())


def test_a_file_that_changes_while_it_is_sent_is_not_stored(
    client: ai.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(adder())
    states = iter([(1, len(adder()), 1), (1, len(adder()), 1), (1, len(adder()), 2)])
    monkeypatch.setattr("shardqa.streaming._state", lambda _: next(states))
    with pytest.raises(ai.ModelRefused, match="changed while it was sent"):
        client.model_store("aic:{changed}", "ONNX", path)
    with pytest.raises(ai.NoSuchModel):
        client.model_get("aic:{changed}")
