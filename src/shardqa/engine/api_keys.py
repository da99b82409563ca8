"""Keys to the HTTP API, in one hash of Redis: few, and read as a whole."""

import asyncio

from pydantic import ValidationError

from shardqa import keys
from shardqa.api_keys import ApiKey, NewKey, make
from shardqa.engine.connected import Connected
from shardqa.errors import UnknownKey

KEPT_SECONDS = 180  # that the requests of a minute are remembered


class ApiKeys(Connected):
    async def create_key(self, wanted: NewKey) -> tuple[ApiKey, str]:
        """(what is kept, the key itself, which nothing shows again)."""
        made, key = make(wanted)
        await self.masters.by_key(keys.API_KEYS, "HSET", made.id, made.model_dump_json())
        return made, key

    async def api_keys(self) -> list[ApiKey]:
        """All, oldest first; what is no key of ours is left out."""
        stored = dict(await self.masters.by_key(keys.API_KEYS, "HGETALL"))
        found = [key for value in stored.values() if (key := _parsed(value)) is not None]
        return sorted(found, key=lambda key: (key.created, key.id))

    async def count_requests(self, minute: int, made: dict[str, int]) -> dict[str, tuple[int, int]]:
        """Adds requests made with keys; by id those of all in this minute (since 1970) and in the one before."""
        name = f"{keys.REQUESTS}{minute}"
        now = await asyncio.gather(*(self.masters.by_key(name, "HINCRBY", id_, count) for id_, count in made.items()))
        await self.masters.by_key(name, "EXPIRE", KEPT_SECONDS)
        before = await self.masters.by_key(f"{keys.REQUESTS}{minute - 1}", "HMGET", *made) if made else []
        told = zip(made, now, before, strict=True)
        return {id_: (int(total), int(last or 0)) for id_, total, last in told}

    async def revoke_key(self, id_: str) -> None:
        """Raises UnknownKey."""
        if not await self.masters.by_key(keys.API_KEYS, "HDEL", id_):
            raise UnknownKey(f"there is no key with the id {id_[:40]!r}; 'shardqa keys ls' lists them")


def _parsed(value: bytes | str) -> ApiKey | None:
    try:
        return ApiKey.model_validate_json(value)
    except ValidationError:
        return None
