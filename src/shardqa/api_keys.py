"""Keys to the HTTP API: what one allows, how it is made and told. Pure functions.

A key is `sq-<id>-<secret>`. Redis holds the secret's SHA-256 alone: of 256 random bits that is as good as a slow hash,
and costs a microsecond a request.
"""

import hashlib
import hmac
import re
import secrets
from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from shardqa import filters, keys
from shardqa.filters import DocumentFilter

Scope = Literal["ask", "ingest", "admin", "metrics"]
SCOPES: tuple[Scope, ...] = ("ask", "ingest", "admin", "metrics")
KEY = re.compile(r"sq-([0-9a-f]{12})-([A-Za-z0-9_-]{43})")


class ApiKey(BaseModel):
    """As it lies in Redis, and as it is listed."""

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
    """What a key shall allow."""

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


def make(wanted: NewKey) -> tuple[ApiKey, str]:
    """(the key to keep, the key to hand out, which nothing can show again)."""
    id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    made = ApiKey(**dict(wanted), id=id_, created=datetime.now(UTC), digest=digest_of(secret))
    return made, f"sq-{id_}-{secret}"


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def parse(key: str) -> tuple[str, str] | None:
    """(id, secret) of what `make` handed out; None for anything else."""
    found = KEY.fullmatch(key)
    return (found[1], found[2]) if found else None


def is_of(secret: str, key: ApiKey) -> bool:
    """In the same time whatever differs."""
    return hmac.compare_digest(digest_of(secret), key.digest)
