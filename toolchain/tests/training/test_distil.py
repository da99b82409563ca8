"""Distillation: ensembles, the soft loss, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from shardqa.errors import BadData
from shardqa_toolchain import cards
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.training import distil
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.recipe import Data, Recipe, Teaching
from shardqa_toolchain.training.saved import load_reader
from toolchain.tests import tiny


def recipe(folder: Path, **teaching: object) -> Recipe:
    train = tiny.question_set(folder / "train.json")
    data = Data(train=(str(train),), held_out=0.0)
    settings = {"teachers": (str(tiny.checkpoint(folder / "teacher", layers=4)),), **teaching}
    start = str(tiny.checkpoint(folder / "start", layers=2, seed=3))
    return Recipe(start, data, Schedule(passes=1, tokens=512, rate=0.01), Teaching(**settings))  # type: ignore[arg-type]


def layers_of(folder: Path) -> int:
    return int(Checkpoint.load(folder).config["num_hidden_layers"])


def test_an_ensemble_teaches_a_student_of_its_own_start(tmp_path: Path) -> None:
    teachers = tuple(str(tiny.checkpoint(tmp_path / f"t{seed}", layers=4, seed=seed)) for seed in (1, 2))
    start = tiny.checkpoint(tmp_path / "student", layers=1)
    settings = replace(recipe(tmp_path, teachers=teachers), start=str(start))
    distil.distil(settings, tmp_path / "out", tmp_path / "work")
    assert layers_of(tmp_path / "out") == 1
    assert cards.Card.load(tmp_path / "out").steps[-1].name == "distil"


def test_the_soft_loss_of_equal_logits_is_nothing() -> None:
    logits = torch.randn(2, 3, 7)
    assert distil.soft_loss(logits, [logits], 2.0, torch.ones(3, 7)).item() == pytest.approx(0, abs=1e-6)


def test_an_ensemble_averages_probabilities_not_logits() -> None:
    sure, unsure = torch.tensor([[[8.0, 0.0]]]), torch.tensor([[[0.0, 0.0]]])
    mean = (sure.softmax(-1) + unsure.softmax(-1)) / 2
    assert distil.soft_loss(mean.log(), [sure, unsure], 1.0, torch.ones(1, 2)).item() == pytest.approx(0, abs=1e-6)


def test_a_student_comes_nearer_to_its_teacher(tmp_path: Path) -> None:
    settings = recipe(tmp_path, soft=1.0)
    teacher, before = (load_reader(tmp_path / name).eval() for name in ("teacher", "start"))
    distil.distil(
        replace(settings, schedule=Schedule(passes=60, tokens=512, rate=0.003)), tmp_path / "o", tmp_path / "w"
    )
    after = load_reader(tmp_path / "o").eval()
    ids = torch.tensor([[101, 2029, 2237, 102, 1996, 9500, 6223, 2167, 2083, 14040, 102]])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]])
    with torch.no_grad():
        taught, *own = (one(ids, torch.ones_like(ids), types).permute(2, 0, 1) for one in (teacher, before, after))
    worse, better = (distil.soft_loss(logits, [taught], 1.0, types) for logits in own)
    assert better < worse


@pytest.mark.parametrize(
    ("teaching", "message"),
    [
        ({"teachers": ()}, "teachers is"),
        ({"soft": 1.5}, "soft is 1.5"),
        ({"temperature": 0.0}, "temperature is 0.0"),
    ],
)
def test_a_setting_that_can_not_be_is_named(teaching: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=message):
        distil.distil(recipe(tmp_path, **teaching), tmp_path / "out", tmp_path / "work")
    assert not (tmp_path / "out").exists()


def test_a_teacher_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    other = tiny.checkpoint(tmp_path / "other")
    (other / "tokenizer.json").write_text((other / "tokenizer.json").read_text() + " ")
    settings = recipe(tmp_path)
    teaching = replace(settings.teaching, teachers=(*settings.teaching.teachers, str(other)))
    with pytest.raises(BadData, match=r"another tokenizer\.json"):
        distil.distil(replace(settings, teaching=teaching), tmp_path / "out", tmp_path / "work")
