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


def row(number: int) -> Any:
    return np.arange(5 + number, dtype=np.int64) + number


def logits(number: int) -> Any:
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
def file(tmp_path: Path) -> Path:
    """A file of three rows."""
    with contextlib.closing(TeacherLogits.open(tmp_path, ("one", "two"))) as store:
        for number in range(3):
            fresh = store.put(row(number), logits(number))
            np.testing.assert_array_equal(fresh, store.get(row(number)))
    return store.path


def test_what_is_stored_is_found_by_the_next_process(file: Path, opened: Opening) -> None:
    store = opened()
    assert len(store) == 3
    for number in range(3):
        np.testing.assert_allclose(store.get(row(number)), logits(number), rtol=1e-3)  # type: ignore[arg-type]
    assert store.get(row(3)) is None


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_record_that_was_cut_short_is_stored_again(file: Path, opened: Opening, cut: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-cut])
    store = opened()
    assert (len(store), store.get(row(2))) == (2, None)
    store.put(row(2), logits(2))
    assert file.read_bytes() == content
    assert len(opened()) == 3


def test_nothing_from_a_damaged_byte_on_is_used(file: Path, opened: Opening) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    assert opened().get(row(2)) is None


@pytest.mark.usefixtures("file")
def test_other_teachers_have_another_file(opened: Opening) -> None:
    assert len(opened("one", "three")) == 0
    assert len(opened()) == 3


def test_a_folder_that_can_not_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadData, match="name another folder"):
        TeacherLogits.open(tmp_path / "file", ["one"])


def recipe(folder: Path) -> Recipe:
    train = tiny.question_set(folder / "train.json")
    teacher = str(tiny.checkpoint(folder / "teacher", 2))
    schedule = Schedule(passes=4, tokens=128, rate=0.003)
    settings = Teaching((teacher,), kept=str(folder / "kept"))
    return Recipe(teacher, Data(train=(str(train),), held_out=0.0), schedule, settings)


def distilled(settings: Recipe, out: Path) -> dict[str, Any]:
    """Returns the weights of a student."""
    distil.distil(settings, out, out.with_name(f"{out.name}.work"))
    return dict(load_file(out / "model.safetensors"))


def test_teachers_read_no_row_twice_and_what_is_stored_teaches_what_they_teach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = recipe(tmp_path)
    exact = distilled(replace(settings, teaching=replace(settings.teaching, kept="")), tmp_path / "read")
    first = distilled(settings, tmp_path / "first")
    np.testing.assert_allclose(first["qa_outputs.weight"], exact["qa_outputs.weight"], atol=5e-3)

    def refuse(*_: object) -> None:
        raise AssertionError("a teacher was asked")

    monkeypatch.setattr(distil.DistilTask, "_teachers_logits", refuse)
    second = distilled(settings, tmp_path / "second")
    assert all((second[name] == value).all() for name, value in first.items())
