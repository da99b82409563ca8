"""One object that asks, ranks, takes documents and looks at the shards.

An Engine belongs to one asyncio loop; the API has one per process, the CLI one per command. It holds connections,
the epochs of the corpora and the answers of this process; everything else is in Redis. Its parts:
`calibration` on `search` on `ask` on `rank`, `documents`, `suggestions` on `catalogue` on `overview`, `retokenising`,
`cluster_view`, `registrations`, `model_runs`, all `connected`.
"""

from types import TracebackType
from typing import Self

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


class Engine(Calibrating, ApiKeys, Documents, Suggesting, Retokenising, ClusterView, RegistrationsView, ModelsView):
    @classmethod
    async def connect(cls, settings: Settings | None = None) -> Self:
        """Without settings, those of the environment. Raises ClusterUnavailable when no node of the cluster answers."""
        settings = settings if settings is not None else Settings()
        engine = cls(settings, await Shards.connect(settings))
        engine.epochs.start()
        return engine

    async def close(self) -> None:
        await self.epochs.stop()
        await self.masters.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
