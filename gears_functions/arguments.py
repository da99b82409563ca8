"""Arguments of a function, checked before anything is looked at or written, and its reply."""

from collections.abc import Sequence
from typing import Any

import orjson

from shardqa.errors import BadData, BadLimit
from shardqa.worker.runtime import Runtime

Record = Sequence[str | bytes]  # trigger and arguments; bytes where they are not UTF-8


def words(record: Record, usage: str, least: int, most: int) -> list[str]:
    """Returns the arguments after the trigger; raises BadData when they are too few, too many or not UTF-8."""
    arguments = record[1:]
    if not least <= len(arguments) <= most:
        raise BadData(f"{len(arguments)} arguments were given; the form is RG.TRIGGER {usage}")
    return [text(argument, usage) for argument in arguments]


def text(argument: str | bytes, usage: str) -> str:
    if isinstance(argument, bytes):
        raise BadData(f"argument {argument[:40]!r} is not UTF-8; encode all of RG.TRIGGER {usage} as UTF-8")
    return argument


def number(name: str, raw: str, low: int, high: int) -> int:
    """Reads a whole number within bounds; raises BadLimit."""
    if not raw.isascii() or not raw.isdigit() or len(raw) > 9 or not low <= int(raw) <= high:
        raise BadLimit(f"{name}={raw[:20]!r} is not a number from {low} to {high}; choose one in between")
    return int(raw)


def reply(runtime: Runtime, **fields: Any) -> str:
    """Returns what most functions reply: a JSON object, with the shard's tag."""
    return orjson.dumps({"tag": runtime.hashtag(), **fields}).decode()
