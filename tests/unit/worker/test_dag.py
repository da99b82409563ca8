"""Operations of a DAG that are under way at once; the models only take requests."""

from typing import cast

import numpy as np

from shardqa.worker.ai.batching import LoadedModel, Request, Result
from shardqa.worker.ai.dag import LOADED, VALUES, Dag, DagExecution, Get, ModelRun

GIVEN = np.ones((1, 2), np.float32)


class Taker:
    """In place of a model: what it was asked waits here."""

    def __init__(self) -> None:
        self.waiting: list[Request] = []

    def put(self, request: Request) -> None:
        self.waiting.append(request)

    def finish(self) -> None:
        request = self.waiting.pop(0)
        request.done(Result(request, [sum(request.arrays, np.zeros_like(GIVEN))], 1, 0))


class Prompt(Taker):
    def put(self, request: Request) -> None:
        super().put(request)
        self.finish()


def test_a_graph_ends_after_the_gets_behind_a_model_that_is_done_before_them() -> None:
    operations: list[Get | ModelRun | None] = [ModelRun(b"1", None, ["a"], ["x"]), Get("a", VALUES)]
    dag = Dag(0, {(LOADED, "a"): GIVEN}, operations, [{"a": LOADED}] * 2)
    replies: list[bytes] = []
    DagExecution(dag, lambda _: cast(LoadedModel, Prompt()), lambda one: replies.append(one.reply())).start()
    assert replies == [b"*2\r\n+OK\r\n*2\r\n,1.0\r\n,1.0\r\n"]


def test_operations_that_need_nothing_of_each_other_are_under_way_at_once() -> None:
    models = {b"1": Taker(), b"2": Taker(), b"3": Taker()}
    dag = Dag(timeout=0, values={(LOADED, "a"): GIVEN}, persist=[(2, "z")])
    dag.operations = [ModelRun(b"1", None, ["a"], ["x"]), ModelRun(b"2", None, ["a"], ["y"])]
    dag.operations.append(ModelRun(b"3", None, ["x", "y"], ["z"]))
    dag.sources = [{"a": LOADED}, {"a": LOADED}, {"x": 0, "y": 1}]
    executions: list[DagExecution] = []
    DagExecution(dag, lambda id: cast(LoadedModel, models[id]), executions.append).start()
    assert [len(model.waiting) for model in models.values()] == [1, 1, 0]
    models[b"2"].finish()
    assert not models[b"3"].waiting
    models[b"1"].finish()
    models[b"3"].finish()
    (execution,) = executions
    assert execution.reply() == b"*3\r\n" + b"+OK\r\n" * 3
    assert [array.tolist() for array in execution.persisted()] == [[[2, 2]]]
