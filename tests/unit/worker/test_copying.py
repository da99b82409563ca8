"""Models that are stored on another shard: the words that are sent, without a server."""

from pathlib import Path
from typing import Any, cast

import pytest
from redis import ResponseError

from shardqa.streaming import FilePart
from shardqa.worker.ai import copying
from shardqa.worker.ai.stored_models import StoredModels
from shardqa.worker.nodes import Cluster

META: list[Any] = [b"backend", b"ONNX", b"device", b"CPU", b"tag", b"t", b"batchsize", 8, b"minbatchsize", 0]
META += [b"inputs", [b"a"], b"outputs", [b"z"], b"minbatchtimeout", 0]


class World:
    """A shard with one model, and another one that takes it."""

    def __init__(self, *places: Path | None, meta: list[Any] = META) -> None:
        self._places, self._meta = list(places), meta
        self.commands: list[tuple[Any, ...]] = []
        self.sent: list[Any] = []

    def file_of(self, key: str) -> Path | None:
        return self._places.pop(0) if len(self._places) > 1 else self._places[0]

    async def call(self, *words: Any) -> Any:
        self.commands.append(words)
        return [*self._meta, b"blob", [b"12", b"3"]] if "BLOB" in words else self._meta

    async def send_to_owner(self, key: str, words: list[Any], seconds: float) -> None:
        self.sent = words

    async def copy(self) -> list[Any]:
        await copying.copy_model(cast(Cluster, self), cast(StoredModels, self), self.call, "m", "to")
        return self.sent


async def test_a_model_in_memory_is_read_and_sent_with_its_options() -> None:
    sent = await World(None).copy()
    head = ["AI.MODELSTORE", "to", b"ONNX", b"CPU", "TAG", b"t", "BATCHSIZE", 8, "BLOB"]
    assert sent == [*head, memoryview(b"12"), memoryview(b"3")]


async def test_one_in_a_file_is_sent_from_there(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"123")
    world = World(path)
    *_, part = await world.copy()
    assert isinstance(part, FilePart)
    assert b"".join(part.pieces()) == b"123"
    assert world.commands == [("AI.MODELGET", "m", "META")]


async def test_one_that_is_replaced_meanwhile_is_not_mixed_with_the_other(tmp_path: Path) -> None:
    with pytest.raises(ResponseError, match="TRYAGAIN m was replaced"):
        await World(tmp_path / "old", tmp_path / "new").copy()
    with pytest.raises(ResponseError, match="TRYAGAIN the file of m can't be read"):
        await World(tmp_path / "gone").copy()


async def test_a_graph_of_tensorflow_takes_its_names_along() -> None:
    sent = await World(None, meta=[b"backend", b"TF", *META[2:], b"padded", [b"a"]]).copy()
    assert sent[8:18] == ["PADDED", 1, b"a", "INPUTS", 1, b"a", "OUTPUTS", 1, b"z", "BLOB"]
