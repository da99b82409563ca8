"""MPNets taken over: transformers' numbers under a reader's own tokenizer, trained, teaching, and refused elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardqa.errors import BadModel
from shardqa.models import cards, shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.training import qa
from shardqa_toolchain.training.adopt import adopt, vocabulary
from shardqa_toolchain.training.average import average
from shardqa_toolchain.training.distil import distil
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.network import buckets
from shardqa_toolchain.training.prune import prune_structures
from shardqa_toolchain.training.recipe import Data, Recipe, Teaching
from shardqa_toolchain.training.saved import load_reader
from toolchain.tests import tiny

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


TEXT = tiny.RIVERS * 12  # long enough that distances of every bucket occur


def mpnet(folder: Path) -> Path:
    """A random MPNet with BERT's wordpieces in MPNet's numbers, as transformers saves it."""
    pieces = vocabulary(shipped.folder())
    numbers = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": len(pieces) + 4}
    numbers |= {piece: number + 4 for piece, number in pieces.items()}
    config = transformers.MPNetConfig(
        vocab_size=len(numbers),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        initializer_range=0.3,
    )
    torch.manual_seed(1)
    transformers.MPNetModel(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": numbers}}))
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mpnet(tmp_path_factory.mktemp("mpnet") / "source")


@pytest.fixture(scope="module")
def adopted(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("adopted") / "adopted"
    adopt(source, shipped.folder(), out)
    return out


def recipe(folder: Path, data: Path, **teaching: Any) -> Recipe:
    return Recipe(
        start=str(folder),
        data=Data(train=(str(data),), held_out=0.0),
        schedule=Schedule(passes=2, tokens=512, rate=1e-3),
        teaching=Teaching(**teaching),
    )


def test_it_gives_the_hidden_states_that_transformers_gives(source: Path, adopted: Path) -> None:
    theirs = transformers.MPNetModel.from_pretrained(source, attn_implementation="eager").eval()
    ids = Tokenizer.load(adopted).passage(TEXT).ids.tolist()
    rows = vocabulary(source)
    names = {number: piece for piece, number in vocabulary(adopted).items()}
    assert len(ids) > 200
    with torch.no_grad():
        own = torch.tensor([[101, *ids, 102]])
        ours = load_reader(adopted).eval().encoder(own, torch.ones_like(own), torch.zeros_like(own))[-1]
        wanted = theirs(torch.tensor([[0, *(rows[names[number]] for number in ids), 2]])).last_hidden_state
    np.testing.assert_allclose(ours, wanted, atol=2e-5)


def test_buckets_tell_near_distances_apart_and_both_sides() -> None:
    table = buckets(300, 32)
    assert table[10, 10] == 0
    assert len({int(table[50, 50 + distance]) for distance in range(-7, 8)}) == 15
    assert table[0, 299] == table[0, 200]
    assert int(table.max()) == 31


def test_its_card_tells_whose_words_it_speaks(adopted: Path) -> None:
    step = cards.Card.load(adopted).steps[-1]
    assert (step.name, list(step.settings)) == ("adopt", ["source", "words"])


def test_it_learns_and_teaches_a_reader_of_another_shape(adopted: Path, tmp_path: Path) -> None:
    data = tiny.question_set(tmp_path / "data.json")
    qa.train(recipe(adopted, data), tmp_path / "teacher", tmp_path / "teacher.work")
    student = tiny.checkpoint(tmp_path / "student")
    taught = recipe(student, data, teachers=(str(tmp_path / "teacher"),), hidden=0.5)
    distil(taught, tmp_path / "out", tmp_path / "out.work")
    before, after = Checkpoint.load(student).weights, Checkpoint.load(tmp_path / "out").weights
    assert any((after[name] != before[name]).any() for name in before)


def test_what_it_learns_is_written_with_its_distances(adopted: Path, tmp_path: Path) -> None:
    data = tiny.question_set(tmp_path / "data.json")
    qa.train(recipe(adopted, data), tmp_path / "teacher", tmp_path / "work")
    before, after = (load_reader(folder).encoder.relative for folder in (adopted, tmp_path / "teacher"))
    assert before is not None
    assert after is not None
    assert (before.weight != after.weight).any()


def test_it_can_be_averaged(adopted: Path, tmp_path: Path) -> None:
    data = tiny.question_set(tmp_path / "data.json")
    qa.train(recipe(adopted, data), tmp_path / "one", tmp_path / "work")
    average([tmp_path / "one", tmp_path / "one"], tmp_path / "mean")
    one, mean = (load_reader(tmp_path / name).encoder.relative for name in ("one", "mean"))
    assert one is not None
    assert mean is not None
    np.testing.assert_allclose(mean.weight.detach(), one.weight.detach(), atol=1e-6)


def test_it_is_not_exported(adopted: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="relative places"):
        export(adopted, tmp_path / "out")


def test_its_heads_are_not_pruned(adopted: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="can't be cut"):
        prune_structures(adopted, tmp_path / "out", 0.5, 0.0, (), 8)


def test_before_it_is_adopted_it_is_not_trained(source: Path) -> None:
    with pytest.raises(BadModel, match="shardqa-models adopt"):
        load_reader(source)


def test_a_bert_needs_no_adopting(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="a BERT already"):
        adopt(tiny.checkpoint(tmp_path / "bert"), shipped.folder(), tmp_path / "out")


def test_words_that_it_does_not_know_are_refused(source: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    text = {"model": {"vocab": {"[PAD]": 0, "zyzzyva##": 1}}}
    (words / "tokenizer.json").write_text(json.dumps(text))
    with pytest.raises(BadModel, match="'zyzzyva##'"):
        adopt(source, words, tmp_path / "out")


@pytest.mark.parametrize("text", ["", "{}", '{"model": {"vocab": {"a": 3}}}'])
def test_a_tokenizer_without_wordpieces_is_refused(text: str, source: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    (words / "tokenizer.json").write_text(text)
    with pytest.raises(BadModel, match="wordpiece"):
        adopt(source, words, tmp_path / "out")


def test_fewer_rows_than_wordpieces_are_refused(source: Path, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.mkdir()
    for name in ("config.json", "model.safetensors"):
        (short / name).write_bytes((source / name).read_bytes())
    numbers = vocabulary(source)
    numbers["zyzzyva"], numbers["the"] = numbers["the"], len(numbers)
    (short / "tokenizer.json").write_text(json.dumps({"model": {"vocab": numbers}}))
    with pytest.raises(BadModel, match="more wordpieces"):
        adopt(short, shipped.folder(), tmp_path / "out")
