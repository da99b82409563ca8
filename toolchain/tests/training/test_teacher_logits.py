"""Teachers' logits on disk: found again, cut short, damaged, and teaching from them."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from shardqa.errors import BadData
from shardqa_toolchain.training import distil
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.recipe import Data, Recipe, Teaching
from shardqa_toolchain.training.teacher_logits import TeacherLogits
from toolchain.tests import tiny

torch = pytest.importorskip("torch")


def row(number: int) -> Any:
    return np.arange(5 + number, dtype=np.int64) + number


def said(number: int) -> Any:
    return np.random.default_rng(number).normal(0, 5, (2, 2, 5 + number)).astype(np.float32)


Opening = Callable[..., TeacherLogits]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opening]:
    """Opens the file of two teachers; closes it at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *teachers: stack.enter_context(
            contextlib.closing(TeacherLogits.open(tmp_path, teachers or ("one", "two")))
        )


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file of three rows."""
    with contextlib.closing(TeacherLogits.open(tmp_path, ("one", "two"))) as found:
        for number in range(3):
            found.put(row(number), said(number))
    return found.path


def test_what_was_said_is_found_by_the_next_process(kept: Path, opened: Opening) -> None:
    found = opened()
    assert len(found) == 3
    for number in range(3):
        there = found.get(row(number))
        assert there is not None
        np.testing.assert_allclose(there, said(number), rtol=1e-3)
    assert found.get(row(3)) is None


def test_a_row_is_given_as_it_will_be_found(opened: Opening) -> None:
    found = opened()
    given = found.put(row(0), said(0))
    np.testing.assert_array_equal(given, found.get(row(0)))


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_record_that_was_cut_short_is_said_again(kept: Path, opened: Opening, cut: int) -> None:
    content = kept.read_bytes()
    kept.write_bytes(content[:-cut])
    found = opened()
    assert (len(found), found.get(row(2))) == (2, None)
    found.put(row(2), said(2))
    assert kept.read_bytes() == content
    assert len(opened()) == 3


def test_nothing_from_a_damaged_byte_on_is_used(kept: Path, opened: Opening) -> None:
    content = bytearray(kept.read_bytes())
    content[-1] ^= 1
    kept.write_bytes(bytes(content))
    assert opened().get(row(2)) is None


def test_other_teachers_have_another_file(kept: Path, opened: Opening) -> None:
    assert len(opened("one", "three")) == 0
    assert len(opened()) == 3


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadData, match="name another folder"):
        TeacherLogits.open(tmp_path / "file", ["one"])


def recipe(folder: Path, **teaching: Any) -> Recipe:
    train = tiny.question_set(folder / "train.json")
    teacher = str(tiny.checkpoint(folder / "teacher", 2))
    schedule = Schedule(passes=4, tokens=128, rate=0.003)
    settings = Teaching((teacher,), kept=str(folder / "kept"), **teaching)
    return Recipe(teacher, 0.0, Data(train=(str(train),), held_out=0.0), schedule, settings)


def test_teachers_read_no_row_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = recipe(tmp_path)
    distil.distil(settings, tmp_path / "first", tmp_path / "first.work")

    def refused(*_: object) -> None:
        raise AssertionError("a teacher was asked")

    monkeypatch.setattr(distil.DistilTask, "_teachers_outputs", refused)
    distil.distil(settings, tmp_path / "second", tmp_path / "second.work")
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("first", "second"))
    assert all((second[name] == value).all() for name, value in first.items())


def test_kept_logits_teach_what_the_teachers_teach(tmp_path: Path) -> None:
    settings = recipe(tmp_path)
    distil.distil(settings, tmp_path / "kept-out", tmp_path / "kept.work")
    asked = replace(settings, teaching=replace(settings.teaching, kept=""))
    distil.distil(asked, tmp_path / "asked-out", tmp_path / "asked.work")
    kept, wanted = (load_file(tmp_path / name / "model.safetensors") for name in ("kept-out", "asked-out"))
    np.testing.assert_allclose(kept["qa_outputs.weight"], wanted["qa_outputs.weight"], atol=5e-3)


def test_hidden_units_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="kept is"):
        distil.distil(recipe(tmp_path, hidden=1.0), tmp_path / "out", tmp_path / "work")
