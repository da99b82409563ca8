"""Cuts the documents of a corpus anew on every shard, and tells how far that is."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from shardqa import keys
from shardqa.description import record_of
from shardqa.engine.connected import Connected, values_and_failures
from shardqa.errors import ClusterUnavailable, UnknownCorpus
from shardqa.schema import Retokenised

PAUSE = 0.2  # seconds between looks


class Retokenising(Connected):
    async def retokenise(self, corpus: str | None = None) -> AsyncIterator[Retokenised]:
        """Begins, unless that runs already, and tells now and then how far it is; the last one is `finished`.

        It goes on when nobody listens any more. Raises UnknownCorpus, ClusterUnavailable (also where the shard that
        began it has forgotten it: its worker was started anew, and what is left is done by another run).
        """
        corpus = keys.check_corpus(self.settings.corpus if corpus is None else corpus)
        first = self.masters.nodes()[0]
        begun = record_of(await self.masters.on(first, "RG.TRIGGER", "Retokenise", corpus, "begin"))
        while True:
            found, failed = values_and_failures(
                await self.masters.everywhere("RG.TRIGGER", "Retokenise", corpus, "look"), record_of
            )
            told = [reply for _, reply in found]
            of_first = next((reply for reply in told if reply["tag"] == begun["tag"]), begun)
            if of_first["run"] != begun["run"]:
                raise ClusterUnavailable(f"shard {first.name} has lost the run, its worker ended; begin again")
            now = _sum(corpus, str(begun["run"]), told, not of_first["running"] and not failed)
            if not now.documents and not failed:
                raise UnknownCorpus(f"there is no corpus {corpus!r}")
            yield now
            if now.finished:
                return
            await asyncio.sleep(PAUSE)


def _sum(corpus: str, run: str, told: list[dict[str, Any]], finished: bool) -> Retokenised:
    parts = [part for part in told if part["run"] == run]
    return Retokenised(
        corpus=corpus,
        documents=sum(part["documents"] for part in told),
        done=sum(part["done"] for part in parts),
        changed=sum(part["changed"] for part in parts),
        failed=sum(part["failed"] for part in parts),
        errors=[error for part in parts for error in part["errors"]],
        finished=finished,
    )
