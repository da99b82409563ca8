"""Learning several tasks: both forms to the end, resumed, exported and read by the runtime."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file, save_file

from shardqa.errors import BadData, BadModel
from shardqa.models.reader import batches
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.optimize import optimize
from shardqa_toolchain.multitask.decoding import SequenceResult, SpanResult, WordsResult
from shardqa_toolchain.multitask.session import MultitaskSession
from shardqa_toolchain.multitask.tasks import CONTROL, FORMS, HEADS
from shardqa_toolchain.training import multitask
from shardqa_toolchain.training.heads import distance
from shardqa_toolchain.training.multitask import MultitaskReport
from shardqa_toolchain.training.multitask_recipe import MultitaskRecipe
from toolchain.tests import tiny, tiny_tasks

OUTPUTS: dict[str, dict[str, tuple[int, ...]]] = {
    HEADS: {
        "start_logits": (1, 29),
        "end_logits": (1, 29),
        "answerable": (1,),
        "topic_logits": (1, 2),
        "places_logits": (1, 29, 5),
    },
    CONTROL: {"control_logits": (1, 30, 11)},
}
QUESTION = "Which town does it flow through?"


class Trained:
    """A run over the tiny data, once for all tests of a form."""

    def __init__(self, folder: Path, form: str) -> None:
        self.form, self.out, self.work = form, folder / "out", folder / "work"
        self.recipe = MultitaskRecipe.read(tiny_tasks.write_recipe(folder, form, passes=60))
        self.report: MultitaskReport = multitask.train(self.recipe, self.out, self.work)


@pytest.fixture(scope="module", params=FORMS)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp(request.param), request.param)


def test_every_task_learns_its_few_examples_in_one_pass_of_a_row(trained: Trained) -> None:
    assert trained.report.examples == {"qa": 2, "said": 2, "topic": 2, "places": 2}
    assert trained.report.rows == (5 if trained.form == HEADS else 11)
    scores = {task: result.scores for task, result in trained.report.scores["float32"].items()}
    assert scores["qa"] == {"F1": 100, "EM": 100, "F1 with refusals": 100}
    assert scores["said"] == scores["topic"] == {"accuracy": 100}
    assert scores["places"] == {"entity F1": 100, "word accuracy": 100}


def test_the_network_has_a_named_output_for_each_thing_in_every_form(trained: Trained, tmp_path: Path) -> None:
    assert optimize(trained.out / "float32", tmp_path / "fused").passed
    for folder in (trained.out / "float32", trained.out / "int8", tmp_path / "fused"):
        session = MultitaskSession(folder)
        (outputs,) = session.outputs([session.rows("the " * 26)[0]])
        assert {name: (1, *value.shape) for name, value in outputs.items()} == OUTPUTS[trained.form]


def test_onnx_says_what_torch_says(trained: Trained) -> None:
    start = Checkpoint.load(trained.out / "checkpoint")
    session = MultitaskSession(trained.out / "float32")
    network = multitask.load_network(start, session.tasks, 0.0).eval()
    rows = session.rows(tiny.RIVERS, QUESTION) + session.rows(tiny.LAKES)
    for batch in batches(rows):
        with torch.no_grad():
            theirs = network(*(torch.from_numpy(value) for value in batch.feeds().values()))
        for line, number in enumerate(batch.rows):
            for name, ours in session.outputs([rows[number]])[0].items():
                exact = theirs[name].numpy()[line]
                if name in session.tasks.outputs_per_token:
                    exact = exact[: len(rows[number])]
                np.testing.assert_allclose(ours, exact, atol=1e-4)


def test_one_reading_gives_all_results_with_their_places(trained: Trained) -> None:
    results = MultitaskSession(trained.out / "float32").read(tiny.RIVERS, QUESTION)
    span, topic, places = results["qa"], results["topic"], results["places"]
    assert isinstance(span, SpanResult)
    assert isinstance(topic, SequenceResult)
    assert isinstance(places, WordsResult)
    assert (span.answer, tiny.RIVERS[span.start : span.end], topic.label) == ("Basel", "Basel", "river")
    marks = [(tiny.RIVERS[mark.start : mark.end], mark.label) for mark in places.entities]
    assert marks == [("Rhine", "WATER"), ("Basel", "TOWN")]


def test_without_a_question_only_what_needs_none_is_answered_and_a_text_needs_no_words(trained: Trained) -> None:
    session = MultitaskSession(trained.out / "int8")
    assert set(session.read(tiny.LAKES)) == {"topic", "places"}
    results = session.read("", QUESTION)
    assert results["qa"] == SpanResult("", 0, 0, -np.inf)
    assert results["places"] == WordsResult((), ())


def test_transformers_reads_the_checkpoint(trained: Trained) -> None:
    kind, name = {
        HEADS: ("AutoModelForQuestionAnswering", "start_logits"),
        CONTROL: ("AutoModelForTokenClassification", "logits"),
    }[trained.form]
    theirs = getattr(transformers, kind).from_pretrained(trained.out / "checkpoint").eval()
    session = MultitaskSession(trained.out / "float32")
    (row,) = session.rows(tiny.RIVERS, QUESTION)[:1]
    (batch,) = batches([row])
    with torch.no_grad():
        outputs = theirs(**{name: torch.from_numpy(value) for name, value in batch.feeds().items()})
    ours = session.outputs([row])[0][next(iter(OUTPUTS[trained.form]))]
    np.testing.assert_allclose(ours, getattr(outputs, name)[0].numpy(), atol=1e-4)


def test_only_heads_that_the_start_lacks_are_fresh(trained: Trained) -> None:
    tasks = MultitaskSession(trained.out / "float32").tasks
    start, same = Checkpoint.load(Path(trained.recipe.start)), Checkpoint.load(trained.out / "checkpoint")
    fresh = multitask.fresh_heads(multitask.load_network(start, tasks, 0.0), start)
    heads = {HEADS: ["heads.1", "heads.2", "heads.3"], CONTROL: ["heads.0"]}[trained.form]
    assert fresh == [f"{head}.{part}" for head in heads for part in ("weight", "bias")]
    assert multitask.fresh_heads(multitask.load_network(same, tasks, 0.0), same) == []


def test_a_head_that_is_missing_is_named(trained: Trained, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(trained.out / "checkpoint", tmp_path / "broken"))
    weights = load_file(broken / "model.safetensors")
    missing = "heads.topic.weight" if trained.form == HEADS else "classifier.weight"
    save_file({name: value for name, value in weights.items() if name != missing}, broken / "model.safetensors")
    with pytest.raises(BadModel, match=f"no tensor '{missing}'"):
        export(broken, tmp_path / "out")


def departure(out: Path, start: Checkpoint) -> float:
    """Returns how far a run's answers to spans have gone from those of its start."""
    session = MultitaskSession(out / "float32")
    before = multitask.known_network(start, session.tasks)
    (batch,) = batches(session.rows(tiny.RIVERS, QUESTION))
    with torch.no_grad():
        targets = before(*(torch.from_numpy(value) for value in batch.feeds().values()))
    (outputs,) = session.outputs(session.rows(tiny.RIVERS, QUESTION))
    names = ("start_logits", "end_logits")
    return sum(float(distance(torch.from_numpy(outputs[name]), targets[name][0])) for name in names)


def test_keep_holds_a_task_to_what_the_start_said(tmp_path: Path) -> None:
    recipe = MultitaskRecipe.read(tiny_tasks.write_recipe(tmp_path, HEADS, passes=20))
    for keep in (0.0, 100.0):
        out, work = tmp_path / f"{keep}", tmp_path / f"{keep}.work"
        multitask.train(replace(recipe, keep=keep), out, work, precisions=["float32"])
    start = Checkpoint.load(Path(recipe.start))
    assert departure(tmp_path / "100.0", start) < 0.2 * departure(tmp_path / "0.0", start)


def test_keep_wants_a_start_that_knows_a_task(tmp_path: Path) -> None:
    recipe = MultitaskRecipe.read(tiny_tasks.write_recipe(tmp_path, CONTROL))
    with pytest.raises(BadData, match="the start knows none of the tasks"):
        multitask.train(replace(recipe, keep=1.0), tmp_path / "out", tmp_path / "work")


def test_the_distance_of_equal_choices_is_nothing_and_of_others_their_divergence() -> None:
    even, sure = torch.zeros(1, 1, 2), torch.tensor([[[np.log(3.0), 0.0]]])
    assert float(distance(sure, sure)) == 0
    assert float(distance(even, sure)) == pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5), abs=1e-6)


def test_labels_come_from_training_and_bind_dev(tmp_path: Path) -> None:
    recipe = MultitaskRecipe.read(tiny_tasks.write_recipe(tmp_path))
    dev = tiny_tasks.write_lines(tmp_path / "dev.jsonl", [{"text": "a", "label": "sea"}])
    tasks = [replace(one, dev=(str(dev),)) if one.name == "topic" else one for one in recipe.task]
    with pytest.raises(BadData, match=r"dev.jsonl, line 1: the label 'sea' is unknown; known are lake, river"):
        multitask.prepare(replace(recipe, task=tuple(tasks)), Tokenizer.load(Path(recipe.start)))


def test_control_tokens_are_the_vocabularys_free_entries() -> None:
    free = [tiny.TOKENIZER.id_of(f"[unused{n}]") for n in range(3)]
    assert free == multitask.control_tokens(tiny.TOKENIZER, 3)
    with pytest.raises(BadModel, match="2000 tasks need one each"):
        multitask.control_tokens(tiny.TOKENIZER, 2000)
