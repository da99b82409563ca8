"""Programs and libraries of RedisAI's and RedisGears' world, on a node: rgsync, redgrease, gears-cli, SmartRedis, and
scikit-learn's classifiers as skl2onnx exports them. Each is pinned and has an environment of its own."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

import numpy as np
import pytest
from redis import ResponseError

from tests.environments import interpreter_of
from tests.nodes import Node, running_node, wait_until

RGSYNC = "rgsync==1.2.0"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # made once, an environment is downloaded


def run_program(python: Path, code: str, *words: str) -> str:
    done = subprocess.run([str(python), "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose module has the name that RedisAI's programs look for."""
    with running_node(tmp_path_factory.mktemp("node"), module_arguments=("NAME", "ai")) as node:
        wait_until(lambda: node.client().execute_command("RG.PYSTATS"), "the worker is ready")
        yield node


# ---- rgsync: write behind to SQLite


class Bank:
    """A table beside a node, and rgsync between them."""

    def __init__(self, client: Any, file: Path) -> None:
        self.client = client
        self.file = file

    def rows(self, query: str = "select person_id, first, age from persons order by person_id") -> list[Any]:
        with closing(connect(self.file)) as table:
            return table.execute(query).fetchall()


WRITE_BEHIND = """
from rgsync import RGWriteBehind, RGWriteThrough
from rgsync.Connectors import SQLiteConnection, SQLiteConnector

connection = SQLiteConnection('{file}')
persons = SQLiteConnector(connection, 'persons', 'person_id')
names = {{'first_name': 'first', 'age': 'age'}}
RGWriteBehind(GB, keysPrefix='person', mappings=names, connector=persons, name='PersonsWriteBehind', version='99.99.99')
RGWriteThrough(GB, keysPrefix='__', mappings=names, connector=persons, name='PersonsWriteThrough', version='99.99.99')
"""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    folder = tmp_path_factory.mktemp("bank")
    file = folder / "bank.sqlite"
    with closing(connect(file)) as table:
        table.execute("create table persons (person_id varchar(100) primary key, first varchar(100), age int)")
    with running_node(
        tmp_path_factory.mktemp("node"), module_arguments=("WRITABLE", str(folder), "REQUIREMENTS_SDIST", "yes")
    ) as node:
        client = node.client(decode_responses=True, socket_timeout=600)
        wait_until(lambda: client.execute_command("RG.PYSTATS"), "the worker is ready")
        try:
            assert (
                client.execute_command("RG.PYEXECUTE", WRITE_BEHIND.format(file=file), "REQUIREMENTS", RGSYNC) == "OK"
            )
        except ResponseError as error:
            if "pip could not install" in str(error):
                pytest.skip(str(error)[:300])
            raise
        yield Bank(client, file)


def test_what_is_written_reaches_the_table(bank: Bank) -> None:
    bank.client.hset("person:1", mapping={"first_name": "Ada", "age": "36"})
    wait_until(lambda: ("1", "Ada", 36) in bank.rows(), "the row is there")


def test_what_is_deleted_leaves_the_table(bank: Bank) -> None:
    bank.client.hset("person:3", mapping={"first_name": "Mary", "age": "18"})
    wait_until(lambda: ("3", "Mary", 18) in bank.rows())
    bank.client.delete("person:3")
    wait_until(lambda: not [row for row in bank.rows() if row[0] == "3"], "the row has gone")


def test_a_write_through_is_in_the_table_when_it_is_answered(bank: Bank) -> None:
    bank.client.hset("__{person:4}", mapping={"first_name": "Grace", "age": "30"})
    assert ("4", "Grace", 30) in bank.rows()
    assert bank.client.hgetall("person:4") == {"first_name": "Grace", "age": "30"}
    assert bank.client.exists("__{person:4}") == 0


def test_a_write_that_asks_for_it_is_acknowledged_in_a_stream(bank: Bank) -> None:
    bank.client.hset("person:5", mapping={"first_name": "Edsger", "age": "50", "#": "=6ce0c902"})
    wait_until(lambda: list(bank.client.scan_iter("*6ce0c902*", _type="stream")), "it is acknowledged")
    assert ("5", "Edsger", 50) in bank.rows()


# ---- clients


def test_gears_cli_runs_a_script(node: Node, tmp_path: Path) -> None:
    python = interpreter_of("gears-cli", ["gears-cli==1.2.0", "redis==4.6.0", "setuptools==80.9.0"], ours="none")
    script = tmp_path / "script.py"
    script.write_text("GB('ShardsIDReader').map(lambda _: 40 + 2).run()")
    words = [str(python.with_name("gears-cli")), "run", "--host", "127.0.0.1", "--port", str(node.port), str(script)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "42" in done.stdout, done.stdout + done.stderr


REDGREASE = """
import sys
import redgrease

rg = redgrease.RedisGears(port=int(sys.argv[1]))
assert rg.gears.pyexecute("GB('ShardsIDReader').map(lambda _: 7).run()") == b"7"
rg.gears.pyexecute("GB('CommandReader').map(lambda r: r[1]).register(trigger='rg-echo')")
assert rg.gears.trigger("rg-echo", "said")
id = rg.gears.pyexecute("GB('PythonReader').run(lambda: (n for n in range(3)))", unblocking=True)
assert sorted(rg.gears.getresultsblocking(id)) == [b"0", b"1", b"2"]
assert [e for e in rg.gears.dumpexecutions() if str(e.executionId) == str(id)]
rg.gears.getexecution(id)
assert rg.gears.dropexecution(id)
assert rg.gears.pystats().CurrAllocated > 0
squares = redgrease.PythonReader().map(lambda n: n * n).run(lambda: range(3), on=rg, requirements=["redis==3.5.3"])
assert sorted(squares) == [0, 1, 4]
"""


def test_redgrease_administers_and_runs(node: Node) -> None:
    packages = ["redgrease[client]==0.3.30", "redis==3.5.3", "redis-py-cluster==2.1.3", "setuptools==80.9.0"]
    run_program(interpreter_of("redgrease", packages, ours="none"), REDGREASE, str(node.port))


SMARTREDIS = """
import os, sys
os.environ["SSDB"], os.environ["SR_DB_TYPE"] = f"127.0.0.1:{sys.argv[1]}", "Standalone"
import numpy as np
from smartredis import Client, Dataset

client = Client(cluster=False, address=os.environ["SSDB"])
client.put_tensor("smart", np.arange(6, dtype="float32").reshape(2, 3))
assert client.tensor_exists("smart") and client.get_tensor("smart").tolist() == [[0, 1, 2], [3, 4, 5]]
data = Dataset("set")
data.add_tensor("t", np.ones(3))
client.put_dataset(data)
assert client.get_dataset("set").get_tensor("t").tolist() == [1, 1, 1]
client.set_model_from_file("adder", sys.argv[2], "ONNX", "CPU")
assert client.model_exists("adder")
for name in "ab":
    client.put_tensor(name, np.full(2, 2, dtype="float32"))
client.run_model("adder", ["a", "b"], ["c"])
assert client.get_tensor("c").tolist() == [4, 4]
"""


def test_smartredis_keeps_tensors_and_runs_models(node: Node, tmp_path: Path) -> None:
    from tests.onnx_models import adder

    (tmp_path / "adder.onnx").write_bytes(adder())
    python = interpreter_of("smartredis", ["smartredis==0.6.1"], ours="none")
    run_program(python, SMARTREDIS, str(node.port), str(tmp_path / "adder.onnx"))


# ---- scikit-learn, exported with what skl2onnx does by default: classifiers give maps behind their labels

EXPORT = """
import sys
from sklearn.datasets import load_iris
from skl2onnx import to_onnx
import importlib, warnings
warnings.simplefilter("ignore")

data, labels = load_iris(return_X_y=True)
data = data.astype("float32")
for path in sys.argv[2:]:
    module, name = path.rsplit(".", 1)
    model = getattr(importlib.import_module(module), name)().fit(data, labels)
    with open(f"{sys.argv[1]}/{name}.onnx", "wb") as file:
        file.write(to_onnx(model, data[:1]).SerializeToString())
    print(name, *model.predict(data[::30]))
"""
ESTIMATORS = [
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.LinearRegression",
    "sklearn.svm.SVC",
    "sklearn.tree.DecisionTreeClassifier",
    "sklearn.ensemble.RandomForestClassifier",
    "sklearn.ensemble.GradientBoostingClassifier",
    "sklearn.neighbors.KNeighborsClassifier",
    "sklearn.naive_bayes.GaussianNB",
    "sklearn.neural_network.MLPClassifier",
    "sklearn.ensemble.RandomForestRegressor",
    "sklearn.cluster.KMeans",
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[float]]]:
    """Each estimator's file, and what it says of the first of 30 flowers each."""
    python = interpreter_of("sklearn", ["scikit-learn==1.5.2", "skl2onnx==1.20.0", "onnx==1.19.1"], ours="none")
    folder = tmp_path_factory.mktemp("sklearn")
    lines = run_program(python, EXPORT, str(folder), *ESTIMATORS).splitlines()
    words = [line.split() for line in lines]
    return {name: (folder / f"{name}.onnx", [float(value) for value in values]) for name, *values in words}


@pytest.mark.parametrize("estimator", [name.rpartition(".")[2] for name in ESTIMATORS])
def test_an_estimator_of_scikit_learn_runs_as_it_is_exported(
    node: Node, exported: dict[str, tuple[Path, list[float]]], estimator: str
) -> None:
    file, expected = exported[estimator]
    client: Callable[..., Any] = node.client().execute_command
    assert client("AI.MODELSTORE", estimator, "ONNX", "CPU", "BLOB", file.read_bytes()) == b"OK"
    outputs = client("AI.MODELGET", estimator, "META")[13]
    flowers = np.array(FLOWERS, "float32")
    client("AI.TENSORSET", "flowers", "FLOAT", *flowers.shape, "BLOB", flowers.tobytes())
    keys = [f"{estimator}:{output.decode()}" for output in outputs]
    assert client("AI.MODELEXECUTE", estimator, "INPUTS", 1, "flowers", "OUTPUTS", len(keys), *keys) == b"OK"
    assert [float(value) for value in client("AI.TENSORGET", keys[0], "VALUES")] == pytest.approx(expected, abs=1e-3)


FLOWERS = [(5.1, 3.5, 1.4, 0.2), (4.8, 3.1, 1.6, 0.2), (5.0, 2.0, 3.5, 1.0), (5.5, 2.6, 4.4, 1.2), (6.9, 3.2, 5.7, 2.3)]
"""Every thirtieth of iris."""
