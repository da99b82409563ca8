"""MPNets taken over: transformers' numbers under a reader's own tokenizer, trained, teaching, and refused elsewhere."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from shardqa.errors import BadModel
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.training import qa
from shardqa_toolchain.training.adopt import adopt, vocabulary
from shardqa_toolchain.training.average import average
from shardqa_toolchain.training.distil import distil
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.network import buckets
from shardqa_toolchain.training.recipe import Data, Recipe, Teaching
from shardqa_toolchain.training.saved import load_reader
from toolchain.tests import tiny

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
    theirs: Any = transformers.MPNetModel.from_pretrained(source, attn_implementation="eager")
    ids = Tokenizer.load(adopted).passage(TEXT).ids.tolist()
    rows = vocabulary(source)
    names = {number: piece for piece, number in vocabulary(adopted).items()}
    assert len(ids) > 200
    with torch.no_grad():
        own = torch.tensor([[101, *ids, 102]])
        ours = load_reader(adopted).eval().encoder(own, torch.ones_like(own), torch.zeros_like(own))[-1]
        exact = theirs.eval()(torch.tensor([[0, *(rows[names[number]] for number in ids), 2]])).last_hidden_state
    np.testing.assert_allclose(ours, exact, atol=2e-5)


def test_buckets_tell_near_distances_apart_and_both_sides() -> None:
    table = buckets(300, 32)
    assert table[10, 10] == 0
    assert len({int(table[50, 50 + distance]) for distance in range(-7, 8)}) == 15
    assert table[0, 299] == table[0, 200]
    assert int(table.max()) == 31


def test_its_card_tells_whose_words_it_speaks(adopted: Path) -> None:
    step = cards.Card.load(adopted).steps[-1]
    assert (step.name, list(step.settings)) == ("adopt", ["source", "words"])


@pytest.fixture(scope="module")
def trained(adopted: Path) -> Path:
    """The adopted network after some training, beside it the data that it learnt from."""
    data = tiny.question_set(adopted.with_name("data.json"))
    qa.train(recipe(adopted, data), adopted.with_name("teacher"), adopted.with_name("work"))
    return adopted.with_name("teacher")


def distances(folder: Path) -> Any:
    relative = load_reader(folder).encoder.relative
    assert relative is not None
    return relative.weight.detach()


def test_it_learns_its_distances_too_and_can_be_averaged(adopted: Path, trained: Path, tmp_path: Path) -> None:
    assert (distances(adopted) != distances(trained)).any()
    average([trained, trained], tmp_path / "mean")
    np.testing.assert_allclose(distances(tmp_path / "mean"), distances(trained), atol=1e-6)


def test_it_teaches_a_reader_of_another_shape(trained: Path, tmp_path: Path) -> None:
    student = tiny.checkpoint(tmp_path / "student")
    taught = recipe(student, trained.with_name("data.json"), teachers=(str(trained),))
    distil(taught, tmp_path / "out", tmp_path / "out.work")
    before, after = Checkpoint.load(student).weights, Checkpoint.load(tmp_path / "out").weights
    assert any((after[name] != before[name]).any() for name in before)


def test_what_only_training_can_compute_is_not_converted(adopted: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="relative places"):
        export(adopted, tmp_path / "out")
    with pytest.raises(BadModel, match="shardqa-models adopt"):
        load_reader(source)


def test_a_bert_needs_no_adopting(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="a BERT already"):
        adopt(tiny.checkpoint(tmp_path / "bert"), shipped.folder(), tmp_path / "out")


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ('{"model": {"vocab": {"[PAD]": 0, "zyzzyva##": 1}}}', "'zyzzyva##'"),
        ("", "wordpiece"),
        ("{}", "wordpiece"),
        ('{"model": {"vocab": {"a": 3}}}', "wordpiece"),
    ],
)
def test_words_that_it_does_not_know_are_refused(tokenizer: str, message: str, source: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tokenizer)
    with pytest.raises(BadModel, match=message):
        adopt(source, tmp_path, tmp_path / "out")


def test_fewer_rows_than_wordpieces_are_refused(source: Path, tmp_path: Path) -> None:
    short = Path(shutil.copytree(source, tmp_path / "short"))
    numbers = vocabulary(source)
    numbers["zyzzyva"], numbers["the"] = numbers["the"], len(numbers)
    (short / "tokenizer.json").write_text(json.dumps({"model": {"vocab": numbers}}))
    with pytest.raises(BadModel, match="more wordpieces"):
        adopt(short, shipped.folder(), tmp_path / "out")
