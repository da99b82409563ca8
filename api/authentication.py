"""Keys of the API: who asks, and whether his key is good for what a route needs.

Loopback needs no key, unless SHARDQA_HTTP_KEYS says so; whatever Authorization it sends is judged
all the same, so that a wrong key has no more rights than a right one. Keys are read from
Redis as a whole, at most every TRUSTED seconds, so a request costs no round trip and a revoked key is refused within
that time. One event loop.
"""

import asyncio
import time
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import Scope

from shardqa.address import is_loopback
from shardqa.api.allowances import Allowances
from shardqa.api.connection import Connection
from shardqa.api.faults import KeyRefused, KeyWanted, NotAllowed
from shardqa.config import Settings
from shardqa.engine import api_keys
from shardqa.engine.api_keys import ApiKey
from shardqa.errors import ClusterUnavailable, ShardqaError

NO_KEY = "bearer none"  # of clients that can't send nothing, as OpenAI's
TRUSTED = 2.0  # seconds that keys are believed without being read again
STALE = 30.0  # seconds that they are believed while Redis can't be asked


class Authentication:
    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._who_needs_one = settings.http_keys
        self._keys = KnownKeys(connection)
        self._allowances = Allowances(connection)

    async def bearer(self, scope: Scope, right: api_keys.Scope) -> ApiKey | None:
        """Returns the key of the request's bearer; None where no key is needed.

        Raises KeyWanted, KeyRefused, NotAllowed, TooManyOfKey, ClusterUnavailable.
        """
        headers = [header for header in Headers(scope=scope).getlist("authorization") if header.lower() != NO_KEY]
        if self._is_open(scope) and not (headers and self._who_needs_one == "others"):
            return None
        if not headers:
            raise KeyWanted("this request needs a key: send 'Authorization: Bearer sq-…'")
        if len(headers) > 1:
            raise KeyRefused(f"the request has {len(headers)} Authorization headers; send one")
        key = await self._of_header(headers[0])
        if key.per_minute is not None:
            scope["state"]["rate_limit"] = (key.per_minute, 0)  # while it is refused
            scope["state"]["rate_limit"] = (key.per_minute, await self._allowances.take(key))
        if not key.allows(right):
            raise NotAllowed(f"the key {key.id} is for {', '.join(key.scopes)}, and this needs {right}")
        return key

    def _is_open(self, scope: Scope) -> bool:
        client = scope.get("client")
        return self._who_needs_one == "none" or (
            self._who_needs_one == "others" and client is not None and is_loopback(client[0])
        )

    async def _of_header(self, header: str) -> ApiKey:
        parts = _secret(header)
        key = (await self._keys.current()).get(parts.id) if parts else None
        if parts is None or key is None or not parts.opens(key):
            raise KeyRefused("what Authorization has is no key, or one that is unknown or was revoked")
        if key.has_expired(datetime.now(UTC)):
            raise KeyRefused(f"the key {key.id} expired at {key.expires:%Y-%m-%d %H:%M} UTC")
        return key


def _secret(header: str) -> api_keys.SentKey | None:
    kind, _, secret = header.partition(" ")
    return api_keys.parse(secret.strip()) if kind.lower() == "bearer" else None


class KnownKeys:
    """All keys by id, as Redis had them at most TRUSTED seconds ago."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, ApiKey] = {}
        self._read = float("-inf")  # monotonic seconds of the last reading
        self._lock = asyncio.Lock()

    async def current(self) -> dict[str, ApiKey]:
        """Returns all keys by id. Raises ClusterUnavailable where they could not be read for STALE seconds."""
        if time.monotonic() - self._read < TRUSTED:
            return self._known
        async with self._lock:
            now = time.monotonic()
            if now - self._read < TRUSTED:
                return self._known
            try:
                self._known = {key.id: key for key in await self._connection.engine.api_keys.all()}
                self._read = now
            except ShardqaError as error:
                if now - self._read > STALE:
                    raise ClusterUnavailable(f"keys can't be checked now: {error}") from None
            return self._known
