"""Keys to the HTTP API, in one hash of Redis: few, and read as a whole."""

import asyncio

from pydantic import ValidationError

from shardqa import keys
from shardqa.api_keys import ApiKey, NewKey, make
from shardqa.engine.connections import Shards
from shardqa.errors import UnknownKey

MINUTE_SECONDS = 180  # life of the key that counts the requests of one minute


class ApiKeys:
    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    async def create(self, new: NewKey) -> tuple[ApiKey, str]:
        """The record, and the key itself, which nothing shows again."""
        record, key = make(new)
        await self._shards.by_key(keys.API_KEYS, "HSET", record.id, record.model_dump_json())
        return record, key

    async def all(self) -> list[ApiKey]:
        """The records, oldest first; what is no key of ours is left out."""
        stored = dict(await self._shards.by_key(keys.API_KEYS, "HGETALL"))
        records = [record for value in stored.values() if (record := _parsed(value)) is not None]
        return sorted(records, key=lambda record: (record.created, record.id))

    async def count_requests(self, minute: int, requests: dict[str, int]) -> dict[str, tuple[int, int]]:
        """Adds requests made with keys; by id those of all in this minute (since 1970) and in the one before."""
        name = f"{keys.REQUESTS}{minute}"
        counts = (self._shards.by_key(name, "HINCRBY", id_, count) for id_, count in requests.items())
        now = await asyncio.gather(*counts)
        await self._shards.by_key(name, "EXPIRE", MINUTE_SECONDS)
        before = await self._shards.by_key(f"{keys.REQUESTS}{minute - 1}", "HMGET", *requests) if requests else []
        return {id_: (int(new), int(old or 0)) for id_, new, old in zip(requests, now, before, strict=True)}

    async def revoke(self, id_: str) -> None:
        """Raises UnknownKey."""
        if not await self._shards.by_key(keys.API_KEYS, "HDEL", id_):
            raise UnknownKey(f"there is no key with the id {id_[:40]!r}; 'shardqa keys ls' lists them")


def _parsed(value: bytes | str) -> ApiKey | None:
    try:
        return ApiKey.model_validate_json(value)
    except ValidationError:
        return None
