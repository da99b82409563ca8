"""One network for several tasks: what it learns, what it gives, how it is measured, what is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch

from shardqa.errors import BadData
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.multitask import scores
from shardqa_toolchain.multitask.lines import Example, read
from shardqa_toolchain.multitask.rows import IGNORED, task_rows
from shardqa_toolchain.multitask.tasks import CONTROL, HEADS, Task, TaskSet
from shardqa_toolchain.training import multitask
from toolchain.tests.tiny import LAKES, RIVERS, TOKENIZER, checkpoint, command

WHERE = "Which town does it flow through?"
LINES: dict[str, list[dict[str, Any]]] = {
    "span": [
        {"text": RIVERS, "question": WHERE, "answer": [30, 35]},
        {"text": LAKES, "question": WHERE, "answer": None},
    ],
    "answerable": [
        {"text": RIVERS, "question": WHERE, "label": True},
        {"text": LAKES, "question": WHERE, "label": False},
    ],
    "text": [
        {"text": RIVERS, "question": WHERE, "label": "river"},
        {"text": LAKES, "question": WHERE, "label": "lake"},
    ],
    "tokens": [
        {"text": RIVERS, "question": WHERE, "spans": [[4, 9, "WATER"], [30, 35, "TOWN"]]},
        {"text": LAKES, "question": WHERE, "spans": [[0, 14, "WATER"]]},
    ],
}
LABELS = {"answerable": ("no", "yes"), "text": ("lake", "river"), "tokens": ("O", "TOWN", "WATER"), "span": ()}


def tasks(form: str, *kinds: str) -> TaskSet:
    return TaskSet(form, tuple(Task(kind, kind, LABELS[kind]) for kind in kinds))


def recipe(folder: Path, form: str, kinds: Sequence[str], passes: int = 300) -> Path:
    """Writes a recipe of tasks named as their kinds, which learns what it is measured on."""
    parts = [f'start = "{checkpoint(folder / "start")}"\nform = "{form}"\nmax_row = 224']
    for kind in kinds:
        (folder / f"{kind}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES[kind]))
        files = f'train = ["{folder / kind}.jsonl"]\ndev = ["{folder / kind}.jsonl"]'
        parts.append(f'[[task]]\nname = "{kind}"\nkind = "{kind}"\n{files}')
    parts.append(f"[schedule]\npasses = {passes}\nrate = 1e-3")
    path = folder / "recipe.toml"
    path.write_text("\n".join(parts))
    return path


@pytest.mark.parametrize(
    ("form", "kinds"), [(HEADS, ("span", "answerable", "text", "tokens")), (CONTROL, ("answerable", "text", "tokens"))]
)
def test_one_network_learns_every_kind_of_task(tmp_path: Path, form: str, kinds: Sequence[str]) -> None:
    told = command("train", "multitask", "--recipe", recipe(tmp_path, form, kinds), "--out", tmp_path / "out", "--json")
    report = json.loads(told.stdout)
    assert report["scores"] == dict.fromkeys(kinds, 100.0)
    assert report["rows"] == 2, "a text's labels of all tasks share a row"
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "int8" / "model.onnx"))
    names = {
        HEADS: ["start_logits", "end_logits", "answerable_logits", "text_logits", "tokens_logits"],
        CONTROL: ["control_logits"],
    }
    assert [one.name for one in session.get_outputs()] == names[form]


def test_torch_and_onnx_give_the_same(tmp_path: Path) -> None:
    """The conversion itself compares numpy with onnxruntime."""
    start = Checkpoint.load(checkpoint(tmp_path / "start"))
    network = multitask.load_network(start, tasks(HEADS, "span", "text", "tokens")).eval()
    multitask.write_network(network, start, tmp_path / "several")
    assert export(tmp_path / "several", tmp_path / "float32").passed
    (row,) = task_rows(network.tasks, RIVERS, WHERE, {}, TOKENIZER, 320)
    (outputs,) = scores.run(tmp_path / "float32", [row])
    with torch.no_grad():
        wanted = network(**{name: torch.from_numpy(value) for name, value in row.row.feeds().items()})
    assert outputs.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(torch.from_numpy(outputs[name]), value[0], rtol=0, atol=1e-4)


def test_in_the_control_form_a_rows_label_stands_at_its_sign() -> None:
    several = tasks(CONTROL, "answerable", "text", "tokens")
    labelled = {"text": Example(RIVERS, WHERE, "river"), "answerable": Example(RIVERS, WHERE, "yes")}
    (one,) = task_rows(several, RIVERS, WHERE, labelled, TOKENIZER, 320)
    assert TOKENIZER.question(">+").tolist()[:2] == one.row.input_ids[1:3].tolist()
    places = {name: target.tolist().index(several.union.index(LABELS[name][1])) for name, target in one.targets.items()}
    assert places == {"answerable": 1, "text": 2}
    assert all((target != IGNORED).sum() == 1 for target in one.targets.values())


def test_a_window_without_the_answer_says_so(tmp_path: Path) -> None:
    text = f"{RIVERS} " + "and so on " * 150
    example = Example(text, WHERE, marks=((30, 35, ""),), answers=("Basel",))
    targets = [
        one.targets["span"].tolist()
        for one in task_rows(tasks(HEADS, "span"), text, WHERE, {"span": example}, TOKENIZER, 320)
    ]
    first, *others = targets
    assert first[0] == first[1] > 0
    assert others == [[0, 0]] * len(others) != []


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("span", {"text": RIVERS, "question": WHERE, "answer": [30, 999]}, "line 1: .30, 999. is no place"),
        ("text", {"text": RIVERS}, "line 1: 'label' is missing"),
        ("answerable", {"text": RIVERS, "label": True}, "'question' is missing"),
    ],
)
def test_a_line_that_can_not_be_used_is_named(tmp_path: Path, kind: str, line: dict[str, Any], message: str) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(BadData, match=message):
        read(path, kind)


def test_a_span_has_no_sign(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="form is 'control', heads, since a span"):
        multitask.MultitaskRecipe.read(recipe(tmp_path, CONTROL, ["span"]))
