"""Keys of the API: who asks, and whether his key is good for what a route needs.

Loopback needs no key, unless SHARDQA_HTTP_KEYS says so. Keys are read from Redis as a whole, at most every TRUSTED
seconds, so a request costs no round trip and a revoked key is refused within that time. One event loop.
"""

import asyncio
import time
from datetime import UTC, datetime

from starlette.datastructures import Headers
from starlette.types import Scope

from shardqa import api_keys
from shardqa.address import is_loopback
from shardqa.api.allowances import Allowances
from shardqa.api.connection import Connection
from shardqa.api.faults import KeyRefused, KeyWanted, NotAllowed
from shardqa.api_keys import ApiKey
from shardqa.config import Settings
from shardqa.errors import ClusterUnavailable, ShardqaError

TRUSTED = 2.0  # seconds that keys are believed without being read again
STALE = 30.0  # seconds that they are believed while Redis can't be asked


class Authentication:
    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._wanted = settings.http_keys
        self._keys = KnownKeys(connection)
        self._allowances = Allowances(connection)

    async def bearer(self, scope: Scope, needed: api_keys.Scope) -> ApiKey | None:
        """Whose request this is; None where no key is asked for.

        Raises KeyWanted, KeyRefused, NotAllowed, TooManyOfKey, ClusterUnavailable.
        """
        if self._is_open(scope):
            return None
        given = Headers(scope=scope).getlist("authorization")
        if not given:
            raise KeyWanted("this request needs a key: send 'Authorization: Bearer sq-…'")
        if len(given) > 1:
            raise KeyRefused(f"the request has {len(given)} Authorization headers; send one")
        found = await self._of_header(given[0])
        await self._allowances.take(found)
        if not found.allows(needed):
            raise NotAllowed(f"the key {found.id} is for {', '.join(found.scopes)}, and this needs {needed}")
        return found

    def _is_open(self, scope: Scope) -> bool:
        client = scope.get("client")
        return self._wanted == "none" or (self._wanted == "others" and client is not None and is_loopback(client[0]))

    async def _of_header(self, given: str) -> ApiKey:
        kind, _, sent = given.partition(" ")
        parsed = api_keys.parse(sent.strip()) if kind.lower() == "bearer" else None
        found = (await self._keys.current()).get(parsed[0]) if parsed else None
        if parsed is None or found is None or not api_keys.is_of(parsed[1], found):
            raise KeyRefused("the key sent is unknown, or was revoked")
        if found.has_expired(datetime.now(UTC)):
            raise KeyRefused(f"the key {found.id} expired at {found.expires:%Y-%m-%d %H:%M} UTC")
        return found


class KnownKeys:
    """All keys by id, as Redis had them at most TRUSTED seconds ago."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, ApiKey] = {}
        self._read = float("-inf")  # monotonic seconds of the last reading
        self._lock = asyncio.Lock()

    async def current(self) -> dict[str, ApiKey]:
        """Raises ClusterUnavailable where they were not read for STALE seconds."""
        if time.monotonic() - self._read < TRUSTED:
            return self._known
        async with self._lock:
            started = time.monotonic()
            if started - self._read < TRUSTED:
                return self._known
            try:
                self._known = {key.id: key for key in await self._connection.engine.api_keys.all()}
                self._read = started
            except ShardqaError as error:
                if started - self._read > STALE:
                    raise ClusterUnavailable(f"keys can't be checked now: {error}") from None
            return self._known
