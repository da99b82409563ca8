"""Documents that the worker ended with: one that it ended with twice is set aside, and the shard serves the rest.

What a document is cut and indexed by is shown to the module, which tells the next worker what ran when this one ended
(`worker_last_running`). That counts it, under `suspects:{T}`, by a digest of what it says: changed, it is another; read
to its end, it is none, for whoever killed the worker meant something else. The worker's loop only.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

from shardqa import keys
from shardqa.errors import BadDocument
from shardqa.worker.runtime import Runtime

ENDS = 2  # of the worker during one document's reading, after which it is not read any more
SECONDS = 30 * 86_400  # that ends are remembered
ENDED = re.compile(r"document ([0-9a-f]{16})")


class Quarantine:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ends: dict[str, int] | None = None  # by digest; None before the first look
        self._look = asyncio.Lock()  # documents that are read side by side count an end once
        self.aside: dict[str, None] = {}  # keys of documents that were met and not read

    @asynccontextmanager
    async def reading(self, key: str, digest: str) -> AsyncIterator[None]:
        """Shows the module what is being read, and clears it at the end. Raises BadDocument where it is set aside."""
        ends = await self.ends()
        self.forget(key)
        if ends.get(digest[:16], 0) >= ENDS:
            self.aside[key] = None
            self._tell()
            raise BadDocument(
                f"document {key!r} is set aside: the worker ended {ends[digest[:16]]} times as it was read, wanted "
                f"less than {ENDS}; change or split its text, or delete it"
            )
        with self.shown(digest):
            yield
        if ends.pop(digest[:16], 0):
            await self._runtime.call("HDEL", keys.suspects(self._runtime.hashtag()), digest[:16])

    def shown(self, digest: str) -> AbstractContextManager[None]:
        return self._runtime.shown(f"document {digest[:16]}")

    def forget(self, key: str) -> None:
        """Forgets a document that has gone, or is another now."""
        if key in self.aside:
            del self.aside[key]
            self._tell()

    def _tell(self) -> None:
        self._runtime.stat("documents_aside", len(self.aside))
        self._runtime.stat("documents_aside_keys", " ".join(self.aside)[:500])

    async def ends(self) -> dict[str, int]:
        """Returns how often the worker ended, by the first digits of the document's digest; counts the last end."""
        async with self._look:
            if self._ends is None:
                name = keys.suspects(self._runtime.hashtag())
                info = await self._runtime.call("INFO", "shardqa")
                (last,) = re.findall(r"worker_last_running:(.*)", info.decode("utf-8", "replace")) or [""]
                counts = [("HINCRBY", name, digest, 1) for digest in ENDED.findall(last)]
                *_, reply = await self._runtime.calls([*counts, ("EXPIRE", name, SECONDS), ("HGETALL", name)])
                pairs = reply if isinstance(reply, list) else []
                ends = zip(map(bytes.decode, pairs[::2]), map(int, pairs[1::2]), strict=True)
                self._ends = dict(ends)
        return self._ends
