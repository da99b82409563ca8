"""A reader of one's own on every shard: answers come from it, and nothing of another reader is mixed in."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardqa import keys
from shardqa.config import Settings
from shardqa.engine import Engine
from shardqa.errors import BadData, BadModel
from shardqa.loader import push
from shardqa.loader.models import ShardModel
from shardqa.loader.preparation import prepare
from shardqa.models import shipped
from shardqa.models.pushed import is_pushed
from shardqa.schema import Answer, Document


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """The shipped reader's files, to be changed."""
    return Path(shutil.copytree(shipped.folder(), tmp_path / "mine"))


def changed(folder: Path, name: str, **changes: Any) -> Path:
    found = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**found, **changes}))
    shipped.write_checksums(folder)
    return folder


def altered(folder: Path) -> Path:
    """Makes another network that answers alike: bytes of an unknown field at the end of its file."""
    with (folder / "model.onnx").open("ab") as file:
        file.write(b"\xfa\x3e\x00")
    shipped.write_checksums(folder)
    return folder


async def answer_of(model: str, settings: Settings, question: str) -> Answer:
    """The answer of an engine that uses that model."""
    async with await Engine.connect(settings.model_copy(update={"model": model})) as engine:
        return await engine.ask(question)


async def test_a_pushed_reader_answers_under_its_name_and_is_pushed_once(
    engine: Engine, settings: Settings, reader: Path
) -> None:
    assert len((await push.push(engine, reader, "pushed-answers")).stored) == 3
    assert (await push.push(engine, reader, "pushed-answers")).stored == []
    await engine.documents.put(Document(id="mill", text="The mill of Brennick was built in 1820 by Ada Holm."))
    answer = await answer_of("pushed-answers", settings, "When was the mill of Brennick built?")
    assert (answer.answer, answer.model, answer.partial) == ("1820", "pushed-answers", False)


def calibrated_again(folder: Path) -> Path:
    return changed(folder, "scoring.json", no_answer_below=0.9)


@pytest.mark.parametrize("change", [altered, calibrated_again])
async def test_another_reader_of_a_name_is_replaced_only_when_told(
    engine: Engine, reader: Path, change: Callable[[Path], Path]
) -> None:
    name = f"pushed-{change.__name__.partition('_')[0]}"
    await push.push(engine, shipped.folder(), name)
    with pytest.raises(BadData, match="--replace"):
        await push.push(engine, change(reader), name)
    if change is altered:
        assert len((await push.push(engine, reader, name, replace=True)).stored) == 3


async def test_a_reader_with_another_tokenizer_is_refused(engine: Engine, reader: Path) -> None:
    changed(reader, "tokenizer.json", normalizer=None)
    with pytest.raises(BadModel, match="cut passages with"):
        await push.push(engine, reader, "pushed-tokens")


async def test_a_damaged_reader_reaches_no_shard(engine: Engine, reader: Path) -> None:
    (reader / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BadModel, match="SHA-256"):
        await push.push(engine, reader, "pushed-damaged")
    shards = await engine.cluster.shards()
    assert shards[0].tag is not None
    assert not await engine.shards.by_key(keys.model("pushed-damaged", shards[0].tag), "EXISTS")


async def test_a_pushed_reader_is_scored_as_its_own_scoring_says(
    engine: Engine, settings: Settings, reader: Path
) -> None:
    even = dict.fromkeys(("bias", "margin", "lag", "gap", "fall", "length", "rank", "evidence", "relevance"), 0.0)
    changed(reader, "scoring.json", answer=even, below={"unsure": 0.5, "balanced": 0.6, "sure": 0.7})
    await push.push(engine, reader, "pushed-scoring")
    await engine.documents.put(Document(id="bridge", text="The bridge of Brennick was built in 1901 by Iva Lund."))
    answer = await answer_of("pushed-scoring", settings, "When was the bridge of Brennick built?")
    assert (answer.score, answer.no_answer) == (0.5, True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An adder of the kind that its suffix says."""
    pytest.importorskip("onnx", reason="the model of this test is made with onnx")
    from tests.onnx_models import adder

    path = tmp_path / "adder.onnx"
    path.write_bytes(adder())
    return path


async def test_any_file_is_pushed_onto_every_shard_and_dropped_again(engine: Engine, file: Path) -> None:
    model = ShardModel.of_file("pushed-file", file, batch_size=8, tag="mine")
    assert len((await push.push_file(engine, model)).stored) == 3
    assert (await push.push_file(engine, model)).stored == []
    for shard in await engine.cluster.shards():
        assert shard.tag is not None
        meta = await engine.shards.by_key(keys.model("pushed-file", shard.tag), "AI.MODELGET", "META")
        assert meta[1] == b"ONNX"
        assert is_pushed(meta[5].decode())
        assert meta[7] == 8
    assert len(await push.drop(engine, "pushed-file")) == 3
    assert await push.drop(engine, "pushed-file") == []


@pytest.mark.parametrize("name", [shipped.NAME, keys.ENCODER])
async def test_a_model_that_the_shards_answer_with_is_not_dropped(engine: Engine, name: str) -> None:
    with pytest.raises(BadData, match="the shards answer with"):
        await push.drop(engine, name)


async def test_prepare_leaves_a_former_release_its_reader_until_it_is_dropped(engine: Engine, reader: Path) -> None:
    await push.push(engine, altered(reader), shipped.FOLDER)
    assert (await prepare(engine)).stored == []
    assert len(await push.drop(engine, shipped.FOLDER)) == 3


def test_a_file_of_no_known_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="--backend"):
        ShardModel.of_file("x", tmp_path / "model.bin")
    with pytest.raises(BadModel, match="can't be read"):
        ShardModel.of_file("x", tmp_path / "model.bin", "onnx")
