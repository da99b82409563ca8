"""A function that uses models, as users write it: checked by test_stubs.py and by `make lint`."""

import redisAI

from shardqa.gears import GB


async def answer(record: list[str]) -> list[float]:
    ids = redisAI.createTensorFromValues("INT64", [1, 3], [1, 2, 3])
    mask = redisAI.createTensorFromBlob("INT64", redisAI.tensorGetDims(ids), redisAI.tensorGetDataAsBlob(ids))
    runner = redisAI.createModelRunner("reader")
    redisAI.modelRunnerAddInput(runner, "ids", ids)
    redisAI.modelRunnerAddOutput(runner, "scores")
    (scores,) = await redisAI.modelRunnerRunAsync(runner)
    redisAI.msetTensorsInKeyspace({"scores": scores, "mask": mask})
    script = redisAI.createScriptRunner("best", "of")
    redisAI.scriptRunnerAddInput(script, "scores", scores)
    redisAI.scriptRunnerAddInput(script, redisAI.getTensorFromKey("mask"))
    redisAI.scriptRunnerAddOutput(script)
    (best,) = await redisAI.scriptRunnerRunAsync(script)
    graph = redisAI.createDAGRunner().Input("best", best).TensorSet(name="mask", tensor=mask)
    graph.ModelRun(name="reader", inputs=["best"], outputs=["again"]).TensorGet("again")
    graph.OpsFromString("|> AI.TENSORGET mask")
    again, _ = await graph.Run()
    return [float(value) for value in redisAI.tensorToFlatList(again)]


def plain(record: list[str]) -> int:
    runner = redisAI.createModelRunner(record[1])
    return len(redisAI.modelRunnerRun(runner))


GB("CommandReader").map(answer).register(trigger="answer", mode="async_local")
GB("CommandReader").map(plain).register(trigger="plain")
