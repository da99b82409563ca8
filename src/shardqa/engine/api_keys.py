"""Keys to the HTTP API: how they are made, and all of them in one hash of Redis: few, and read as a whole.

A key is `sq-<id>-<secret>`. Redis holds the secret's SHA-256 alone: of 256 random bits that is as good as a slow hash,
and costs a microsecond a request.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from shardqa import filters, keys
from shardqa.engine.connections import Shards
from shardqa.errors import UnknownKey
from shardqa.filters import DocumentFilter

Scope = Literal["ask", "ingest", "admin", "metrics"]
SCOPES: tuple[Scope, ...] = ("ask", "ingest", "admin", "metrics")
MINUTE_SECONDS = 180  # life of the key that counts the requests of one minute
KEY = re.compile(r"sq-([0-9a-f]{12})-([A-Za-z0-9_-]{43})")


class ApiKey(BaseModel):
    """A key as Redis holds it and as it is listed."""

    model_config = ConfigDict(extra="forbid")

    id: str
    name: str
    scopes: list[Scope]
    corpora: list[str] | None = None  # that it is for; None: all
    filter: DocumentFilter | None = None  # of what it may ask, on top of what a request says
    per_minute: int | None = None  # requests, of all API processes together
    created: AwareDatetime
    expires: AwareDatetime | None = None
    digest: str  # SHA-256 of the secret

    def allows(self, scope: Scope) -> bool:
        return "admin" in self.scopes or scope in self.scopes

    def is_for(self, corpus: str) -> bool:
        return self.corpora is None or corpus in self.corpora

    def has_expired(self, now: datetime) -> bool:
        return self.expires is not None and now >= self.expires


class NewKey(BaseModel):
    """A request for a key."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    scopes: list[Scope] = Field(min_length=1)
    corpora: list[str] | None = None
    filter: DocumentFilter | None = None
    per_minute: int | None = Field(None, ge=1)
    expires: AwareDatetime | None = None

    @field_validator("corpora")
    @classmethod
    def check_corpora(cls, corpora: list[str] | None) -> list[str] | None:
        for corpus in corpora or ():
            keys.check_corpus(corpus)
        return corpora

    @model_validator(mode="after")
    def check_filter(self) -> "NewKey":
        if self.filter is not None:
            filters.canonical(self.filter)
            if set(self.scopes) - {"ask", "metrics"}:
                raise ValueError("a key with a filter is for asking only; leave out the scopes ingest and admin")
        return self


class SentKey(NamedTuple):
    """A key as a request brings it."""

    id: str
    secret: str

    def opens(self, key: ApiKey) -> bool:
        """Takes the same time whatever differs."""
        return hmac.compare_digest(digest_of(self.secret), key.digest)


def make(new: NewKey) -> tuple[ApiKey, str]:
    """The record, and the key to hand out, which nothing can show again."""
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    record = ApiKey(**dict(new), id=id_, created=datetime.now(UTC), digest=digest_of(secret))
    return record, f"sq-{id_}-{secret}"


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(key: str) -> SentKey | None:
    """Takes apart what `make` handed out; None for anything else."""
    match = KEY.fullmatch(key)
    return SentKey(match[1], match[2]) if match else None


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
        values = dict(await self._shards.by_key(keys.API_KEYS, "HGETALL"))
        records = [record for value in values.values() if (record := _parsed(value)) is not None]
        return sorted(records, key=lambda record: (record.created, record.id))

    async def count_requests(self, minute: int, requests: dict[str, int]) -> dict[str, tuple[int, int]]:
        """Adds requests; returns those of all processes by key, in this minute (since 1970) and in the one before."""
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
