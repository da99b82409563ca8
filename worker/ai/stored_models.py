"""The models of this shard, one record each. Reading, loop's and models' threads look here, one at a time."""

import threading
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from redis import ResponseError

from shardqa.worker.ai.batching import LoadedModel


@dataclass(frozen=True, slots=True)
class StoredModel:
    key: bytes
    tag: str
    file: Path | None  # that it lies in; None: it is in memory
    loaded: LoadedModel


class StoredModels:
    def __init__(self) -> None:
        self._changed = threading.Condition()  # with the lock of all below
        self._models: dict[bytes, StoredModel] = {}  # by the module's model id
        self._ids: dict[str, list[bytes]] = {}  # by key: of its models that have loaded, the one stored last at the end
        self._dropped: list[bytes] = []  # keys, since `take_dropped`
        self._loading = 0

    def begin(self, id: bytes, key: bytes, tag: str, file: Path | None, start: Callable[[], LoadedModel]) -> None:
        """Adds a model that `start` begins to load; `settle`, called by another thread, waits until it is here."""
        with self._changed:
            self._models[id] = StoredModel(key, tag, file, start())
            self._loading += 1

    def settle(self, id: bytes, own: LoadedModel, is_good: bool) -> None:
        """Ends the loading of a model: a good one is found by its key from now on, a bad one tells why it is bad."""
        with self._changed:
            model = self._models.get(id)
            if is_good and model is not None and model.loaded is own:
                insort(self._ids.setdefault(model.key.decode("utf-8", "surrogateescape"), []), id, key=number)
            self._loading -= 1
            self._changed.notify_all()

    def drop(self, id: bytes) -> LoadedModel | None:
        with self._changed:
            model = self._models.pop(id, None)
            if model is None:
                return None
            self._dropped.append(model.key)
            left = {key: [other for other in ids if other != id] for key, ids in self._ids.items()}
            self._ids = {key: ids for key, ids in left.items() if ids}
            return model.loaded

    def by_id(self, id: bytes) -> LoadedModel | None:
        """Returns a model without the lock; for the thread that leads, which alone drops one."""
        model = self._models.get(id)
        return None if model is None else model.loaded

    def at(self, key: str) -> LoadedModel:
        """Returns the model stored at a key. Raises redis.ResponseError where there is none."""
        model = self._last(key)
        if model is None:
            raise ResponseError(f"ERR model key is empty: no model {key} on this shard; store it with AI.MODELSTORE")
        return model.loaded

    def tag_of(self, key: str) -> str | None:
        """Returns the TAG of the model stored at a key; None: there is none."""
        model = self._last(key)
        return None if model is None else model.tag

    def _last(self, key: str) -> StoredModel | None:
        with self._changed:
            return self._models.get(self._ids.get(key, [b""])[-1])

    def file_of(self, key: str) -> Path | None:
        """Returns the file of the model stored at a key; None: it is in memory. Raises redis.ResponseError."""
        with self._changed:
            ids = self._ids.get(key, ())
            if not ids:
                raise ResponseError(f"ERR model key is empty: the worker has no model {key}")
            if len(ids) > 1:
                raise ResponseError(f"TRYAGAIN {key} is being replaced")
            return self._models[ids[0]].file

    def above(self, size: int) -> list[str]:
        """Returns the keys of models that lie in files of more than `size` bytes."""
        with self._changed:
            files = [(key, file) for key, ids in self._ids.items() if (file := self._models[ids[-1]].file)]
        return [key for key, file in files if file.exists() and file.stat().st_size > size]

    def every(self) -> list[StoredModel]:
        with self._changed:
            return list(self._models.values())

    def take_dropped(self) -> list[bytes]:
        with self._changed:
            drops, self._dropped = self._dropped, []
        return drops

    def wait_settled(self) -> None:
        """Blocks until no model is being loaded; for a helper thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._loading == 0)


def number(id: bytes) -> int:
    """Returns a model's id as a number, which is higher for a model stored later."""
    return int(id) if id.isdigit() else 0
