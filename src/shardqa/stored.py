"""The value of an `ask:` key: an Asked as JSON, with each passage once, however many candidates it has."""

from typing import Any

import orjson

from shardqa.answer import Asked

OF_PASSAGE = ("document", "title", "passage", "passage_start", "shard", "rank_score")
"""Fields of a Candidate that all those of one passage share."""


def pack(asked: Asked) -> bytes:
    fields = asked.model_dump()
    numbers: dict[tuple[Any, ...], int] = {}  # passage -> its place
    for candidate in fields["candidates"]:
        passage = tuple(candidate.pop(name) for name in OF_PASSAGE)
        candidate["of"] = numbers.setdefault(passage, len(numbers))
    return orjson.dumps({**fields, "passages": [dict(zip(OF_PASSAGE, passage, strict=True)) for passage in numbers]})


def unpack(value: bytes) -> Asked | None:
    """None for a value that is not ours, or not of this version."""
    try:
        fields = orjson.loads(value)
        passages = fields["passages"]
        fields["candidates"] = [{**passages[candidate["of"]], **candidate} for candidate in fields["candidates"]]
        return Asked.model_validate(fields)
    except (LookupError, TypeError, ValueError):  # JSON's and Pydantic's faults are ValueErrors
        return None
