"""The pair of models of a new corpus."""

import asyncio
from types import SimpleNamespace
from typing import Any

from shardqa.engine.pair_choice import PairChoice

GERMAN = "Die Mühle von Brennick mahlt nur Roggen, und im Winter steht sie still."


async def test_documents_put_together_wait_for_one_choice_of_their_corpus() -> None:
    done = list[str]()

    class Catalogue:
        async def corpora(self) -> Any:
            await asyncio.sleep(0)
            return SimpleNamespace(partial=False, corpora=[])

        async def switch(self, *_: object) -> None:
            done.append("chosen")

    catalogue: Any = Catalogue()
    choice = PairChoice(catalogue)

    async def put() -> None:
        await choice.choose("mills", [GERMAN])
        done.append("put")

    await asyncio.gather(put(), put())
    assert done == ["chosen", "put", "put"]
