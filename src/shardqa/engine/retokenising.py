"""Cuts the documents of a corpus anew on every shard, and tells how far that is."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from shardqa import keys
from shardqa.config import Settings
from shardqa.description import record_of
from shardqa.engine.connections import Shards, values_and_failures
from shardqa.errors import ClusterUnavailable, UnknownCorpus
from shardqa.schema import Retokenised

PAUSE = 0.2  # seconds between looks


class Retokenising:
    def __init__(self, settings: Settings, shards: Shards) -> None:
        self._settings = settings
        self._shards = shards

    async def run(self, corpus: str | None = None) -> AsyncIterator[Retokenised]:
        """Begins, unless that runs already, and tells now and then how far it is; the last one is `finished`.

        It goes on when nobody listens any more. Raises UnknownCorpus, ClusterUnavailable (also where the shard that
        began it has forgotten it: its worker was started anew, and what is left is done by another run).
        """
        corpus = keys.check_corpus(self._settings.corpus if corpus is None else corpus)
        first = self._shards.nodes()[0]
        begun = record_of(await self._shards.on(first, "RG.TRIGGER", "Retokenise", corpus, "begin"))
        while True:
            replies = await self._shards.everywhere("RG.TRIGGER", "Retokenise", corpus, "look")
            values, failed = values_and_failures(replies, record_of)
            parts = [part for _, part in values]
            own = begun if first.name in failed else dict(values).get(first.name, {"run": ""})
            if own["run"] != begun["run"]:
                raise ClusterUnavailable(f"shard {first.name} has lost the run, its worker ended; begin again")
            now = _sum(corpus, str(begun["run"]), parts, not own["running"] and not failed)
            if not now.documents and not failed:
                raise UnknownCorpus(f"there is no corpus {corpus!r}")
            yield now
            if now.finished:
                return
            await asyncio.sleep(PAUSE)


def _sum(corpus: str, run: str, parts: list[dict[str, Any]], finished: bool) -> Retokenised:
    of_run = [part for part in parts if part["run"] == run]
    return Retokenised(
        corpus=corpus,
        documents=sum(part["documents"] for part in parts),
        done=sum(part["done"] for part in of_run),
        changed=sum(part["changed"] for part in of_run),
        failed=sum(part["failed"] for part in of_run),
        errors=[error for part in of_run for error in part["errors"]],
        finished=finished,
    )
