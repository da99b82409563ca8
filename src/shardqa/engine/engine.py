"""One object that asks, ranks, takes documents and looks at the shards.

An Engine belongs to one asyncio loop; the API has one per process, the CLI one per command. It holds connections,
the epochs of the corpora and the answers of this process; everything else is in Redis. Its parts:
`calibration` on `search` on `ask` on `rank`, `documents`, `suggestions` on `catalogue` on `overview`, `retokenising`,
`cluster_view`, `registrations`, `model_runs`, all `connected`.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Self, Unpack

from shardqa.config import Settings
from shardqa.engine.api_keys import ApiKeys
from shardqa.engine.calibration import Calibrating
from shardqa.engine.cluster_view import ClusterView
from shardqa.engine.connections import Shards
from shardqa.engine.documents import Documents
from shardqa.engine.model_runs import ModelsView
from shardqa.engine.registrations import RegistrationsView
from shardqa.engine.retokenising import Retokenising
from shardqa.engine.suggestions import Suggesting
from shardqa.question import Choices, Question
from shardqa.schema import Answer, Explanation, SearchResult, Step


class Engine(Calibrating, ApiKeys, Documents, Suggesting, Retokenising, ClusterView, RegistrationsView, ModelsView):
    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Self:
        """Without settings, those of the environment. Raises ClusterUnavailable when no node of the cluster answers."""
        settings = settings if settings is not None else Settings()
        engine = cls(settings, await Shards.connect(settings))
        engine.epochs.start()
        return engine

    def question(self, wording: str, **choices: Unpack[Choices]) -> Question:
        """What `ask` takes, with what the settings say where nothing is chosen. Raises as `Question.of`."""
        return Question.of(wording, self.settings, **choices)

    async def ask(
        self, question: Question | str, on_step: Callable[[Step], None] | None = None, **choices: Unpack[Choices]
    ) -> Answer:
        """The answer from the documents of a corpus. Raises as `Question.of` and `Asking.ask`."""
        return await super().ask(self._question(question, choices), on_step)

    async def search(self, question: Question | str, limit: int = 10, **choices: Unpack[Choices]) -> SearchResult:
        return await super().search(self._question(question, choices), limit)

    async def explain(self, question: Question | str, **choices: Unpack[Choices]) -> Explanation:
        return await super().explain(self._question(question, choices))

    def _question(self, question: Question | str, choices: Choices) -> Question:
        return question if isinstance(question, Question) else self.question(question, **choices)

    async def close(self) -> None:
        await self.epochs.stop()
        await self.masters.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
