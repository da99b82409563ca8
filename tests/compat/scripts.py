"""Scripts the compat tests send: the styles RedisGears' users wrote, in our own words."""

from typing import Any

from redis import Redis

ANSWERS = """
import asyncio

async def answer(record):
    key = record['key']
    text = 'answer of ' + key
    execute('SET', key, text, 'EX', 100)
    override_reply(text)

GB('KeysReader', desc='answers').map(answer).register(
    prefix='{prefix}*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""

# in the manner of a question answering pipeline: stored tensors are read, joined, run, and the best place is the answer
READER = """
import redisAI
import numpy as np

async def read(record):
    _, document, question = record['key'].split(':')
    words = np.frombuffer(redisAI.tensorGetDataAsBlob(redisAI.getTensorFromKey('tokens:' + document)), np.int64)
    asked = np.array([int(word) for word in question.split()], np.int64)
    ids = np.append(asked, words)[None, :]
    runner = redisAI.createModelRunner('reader')
    tensor = redisAI.createTensorFromBlob('INT64', ids.shape, ids.tobytes())
    mask = redisAI.createTensorFromValues('INT64', ids.shape, [1] * ids.size)
    redisAI.modelRunnerAddInput(runner, 'ids', tensor)
    redisAI.modelRunnerAddInput(runner, 'mask', mask)
    redisAI.modelRunnerAddOutput(runner, 'scores')
    (scores,) = await redisAI.modelRunnerRunAsync(runner)
    best = int(np.argmax(redisAI.tensorToFlatList(scores)))
    result = f'{best}'
    execute('SET', record['key'], result)
    override_reply(result)

GB('KeysReader').map(read).register(prefix='read:*', commands=['get'], eventTypes=['keymiss'], mode='async_local')
"""

ECHO = "GB('CommandReader').map(lambda r: {value!r}).register(trigger={trigger!r}, mode='async_local')"


def echo(trigger: str, value: str = "yes") -> str:
    return ECHO.format(trigger=trigger, value=value)


def send(client: Redis, *words: str | int | bytes) -> Any:
    """Any command, as it is."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call, unused-ignore]


def fields(pairs: list[Any]) -> dict[str, Any]:
    """A reply of names and values in turn, as a dictionary."""
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def registrations(client: Redis) -> list[dict[str, Any]]:
    """All registrations of a node, what their readers say among the other fields."""
    return [entry | fields(entry["RegistrationData"]) for entry in map(fields, send(client, "RG.DUMPREGISTRATIONS"))]


def registered_ids(client: Redis) -> list[str]:
    return [str(entry["id"]) for entry in registrations(client)]


def register(client: Redis, trigger: str, function: str, steps: str = ".map(f)", **options: Any) -> None:
    """A trigger whose steps call what `function` defines; a second one of its name replaces it."""
    words = {"trigger": trigger, "mode": "async_local", **options}
    arguments = ", ".join(f"{name}={value!r}" for name, value in words.items())
    code = f"{function}\nGB('CommandReader'){steps}.register({arguments})"
    assert send(client, "RG.PYEXECUTE", code, "ID", trigger, "UPGRADE") == "OK"
