"""The retired client `redisai` 1.3.0, each of its methods, against a node on the port in REDISAI_PORT.

Run by test_redisai_client.py with the pytest of the client's own environment, which has neither shardqa nor torch: the
files of the models come in the folder REDISAI_MODELS.
"""

# mypy: ignore-errors
import os
from pathlib import Path

import numpy as np
import pytest
from redis.exceptions import ResponseError
from redisai import Client

MODELS = Path(os.environ["REDISAI_MODELS"])
ADDER = (MODELS / "adder.onnx").read_bytes()
TORCH = (MODELS / "adder.pt").read_bytes() if (MODELS / "adder.pt").exists() else None
SCRIPT = """
def bar(tensors: List[Tensor], keys: List[str], args: List[str]):
    return tensors[0] + tensors[1]

def put(tensors: List[Tensor], keys: List[str], args: List[str]):
    redis.execute("SET", keys[0], args[0])
    return torch.tensor(int(str(redis.execute("GET", keys[0]))))
"""
OLD_SCRIPT = "def bar(a, b):\n    return a + b\n"
needs_torch = pytest.mark.skipif(TORCH is None, reason="the node's environment has no torch")


@pytest.fixture
def client():
    made = Client(port=int(os.environ["REDISAI_PORT"]))
    made.flushall()
    made.tensorset("a", (2, 3), dtype="float")
    made.tensorset("b", (2, 3), dtype="float")
    return made


NEWER = ["uint32", "uint64"]  # RedisAI refused them
TYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", *NEWER]


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_of_numpy(client, dtype):
    array = np.array([[0, 1], [1, 0]], dtype)
    assert client.tensorset("x", array) == "OK"
    given = client.tensorget("x")
    assert (given.dtype, given.tolist()) == (array.dtype, array.tolist())


def test_tensors_of_lists(client):
    assert client.tensorset("x", (2, 3, 4, 5), shape=(2, 2), dtype="float") == "OK"
    assert client.tensorget("x", as_numpy=False) == {"dtype": "FLOAT", "shape": [2, 2], "values": [2.0, 3.0, 4.0, 5.0]}
    assert client.tensorget("x", meta_only=True) == {"dtype": "FLOAT", "shape": [2, 2]}
    client.tensorset("s", ["hello", "world"], dtype="str")
    assert client.tensorget("s", as_numpy=False)["values"] == ["hello", "world"]
    client.tensorset("s", np.array(["hello", "world"]))
    assert client.tensorget("s").tolist() == ["hello", "world"]


def test_config(client):
    assert client.config("MODEL_CHUNK_SIZE") == 511 * 1024 * 1024
    assert client.config("MODEL_CHUNK_SIZE", 128 * 1024) == "OK"
    assert client.config("MODEL_CHUNK_SIZE") == 128 * 1024
    assert client.config("MODEL_CHUNK_SIZE", 511 * 1024 * 1024) == "OK"
    assert client.config("BACKENDSPATH", "/some/where") == "OK"
    with pytest.raises(ResponseError):
        client.loadbackend("TORCH", "/nowhere/redisai_torch.so")


def test_models(client):
    assert client.modelstore("m", "onnx", "CPU", ADDER, batch=2, minbatch=1, tag="v1") == "OK"
    meta = client.modelget("m", meta_only=True)
    assert (meta["backend"], meta["device"], meta["tag"]) == ("ONNX", "CPU", "v1")
    assert (meta["batchsize"], meta["minbatchsize"]) == (2, 1)
    assert (meta["inputs"], meta["outputs"]) == (["a", "b"], ["sum"])
    assert client.modelget("m")["blob"] == ADDER
    assert client.modelscan() == [["m", "v1"]]
    assert client.modelexecute("m", ["a", "b"], ["c"], timeout=5000) == "OK"
    assert client.tensorget("c").tolist() == [4, 6]
    info = client.infoget("m")
    assert (info["type"], info["backend"], info["calls"], info["errors"]) == ("MODEL", "ONNX", 1, 0)
    assert client.inforeset("m") == "OK"
    assert client.infoget("m")["calls"] == 0
    assert client.modeldel("m") == "OK"
    with pytest.raises(ResponseError):
        client.modelget("m")


def test_a_model_stored_in_chunks(client):
    client.config("MODEL_CHUNK_SIZE", len(ADDER) // 3)
    assert client.modelstore("m", "onnx", "cpu", ADDER) == "OK"
    assert client.modelget("m")["device"] == "cpu"
    assert b"".join(client.modelget("m")["blob"]) == ADDER
    client.config("MODEL_CHUNK_SIZE", 511 * 1024 * 1024)


def test_deprecated_models(client):
    assert client.modelset("m", "onnx", "cpu", ADDER) == "OK"
    assert client.modelrun("m", ["a", "b"], ["c"]) == "OK"
    assert client.tensorget("c").tolist() == [4, 6]


@needs_torch
def test_torch_models(client):
    assert client.modelstore("m", "torch", "cpu", TORCH) == "OK"
    assert client.modelexecute("m", ["a", "b"], "c") == "OK"
    assert client.tensorget("c").tolist() == [4, 6]


@needs_torch
def test_scripts(client):
    assert client.scriptstore("s", "cpu", SCRIPT, ["bar", "put"], tag="t") == "OK"
    got = client.scriptget("s")
    assert (got["device"], got["tag"], got["source"], got["entry points"]) == ("cpu", "t", SCRIPT, [b"bar", b"put"])
    assert "source" not in client.scriptget("s", meta_only=True)
    assert client.scriptscan() == [["s", "t"]]
    assert client.scriptexecute("s", "bar", inputs=["a", "b"], outputs=["c"]) == "OK"
    assert client.tensorget("c").tolist() == [4, 6]
    assert client.scriptexecute("s", "put", keys=["k"], args=["42"], outputs=["n"], timeout=60000) == "OK"
    assert (client.get("k"), client.tensorget("n").tolist()) == (b"42", 42)
    assert client.infoget("s")["samples"] == -1
    assert client.scriptdel("s") == "OK"


@needs_torch
def test_deprecated_scripts(client):
    assert client.scriptset("s", "cpu", OLD_SCRIPT, tag="t") == "OK"
    assert client.scriptrun("s", "bar", ["a", "b"], ["c"]) == "OK"
    assert client.tensorget("c").tolist() == [4, 6]


def test_dags(client):
    client.modelstore("m", "onnx", "cpu", ADDER)
    dag = client.dag(load=["a"], persist=["out"], timeout=5000)
    dag.tensorset("t", np.array([10, 20], np.float32)).modelexecute("m", ["a", "t"], "out").tensorget("out")
    done, ran, given = dag.execute()
    assert (done, ran, given.tolist()) == ("OK", "OK", [12, 23])
    assert client.tensorget("out").tolist() == [12, 23]
    read_only = client.dag(load=["a", "b"], routing="a", readonly=True)
    assert read_only.modelexecute("m", ["a", "b"], "x").tensorget("x").execute()[1].tolist() == [4, 6]


def test_deprecated_dags(client):
    client.modelstore("m", "onnx", "cpu", ADDER)
    dag = client.dag().tensorset("t", np.array([1, 1], np.float32)).modelrun("m", ["t", "t"], ["u"]).tensorget("u")
    assert dag.run()[2].tolist() == [2, 2]
    dag = client.dag(readonly=True).tensorset("t", np.array([1, 1], np.float32)).tensorget("t")
    assert dag.run()[1].tolist() == [1, 1]


@needs_torch
def test_a_dag_with_a_script(client):
    client.scriptstore("s", "cpu", SCRIPT, "bar")
    dag = client.dag(load=["a", "b"]).scriptexecute("s", "bar", inputs=["a", "b"], outputs=["c"]).tensorget("c")
    assert dag.execute()[1].tolist() == [4, 6]


@pytest.mark.parametrize("transaction", [True, False])
def test_pipelines(client, transaction):
    pipe = client.pipeline(transaction=transaction)
    pipe.tensorset("x", np.array([1, 2], np.float32)).tensorget("x").set("native", 1)
    done, given, native = pipe.execute()
    assert (done, given.tolist(), native) == (b"OK", [1, 2], True)
