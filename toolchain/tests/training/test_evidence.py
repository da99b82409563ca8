"""The outputs evidence and relevance: labels, losses, figures, and a tiny reader that learns them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from shardqa.errors import BadModel
from shardqa.models import shipped
from shardqa.models.reader import Row, join
from shardqa_toolchain import evidence_lines
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.training import average, distil, examples, loop, losses, qa
from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningRow, collate
from shardqa_toolchain.training.held_out import HeldOutRow, figures
from shardqa_toolchain.training.loop import Schedule
from shardqa_toolchain.training.network import ReaderLogits, SpanReader
from shardqa_toolchain.training.recipe import Data, Recipe, Teaching
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from shardqa_toolchain.training.spans import crop, learning_rows
from toolchain.tests import tiny

GREEN = "Its colour is green, and its mouth lies in the Netherlands."
VOCABULARY = json.loads((shipped.folder() / "tokenizer.json").read_text())["model"]["vocab"]
PIECES = {number: piece for piece, number in VOCABULARY.items()}


def lines(path: Path) -> Path:
    """Writes two questions of a text of two sentences: the second sentence answers one, none the other."""
    start = tiny.RIVERS.index(GREEN)
    yes = EvidenceRecord("yes", "Why is the Rhine green?", "Rhine", tiny.RIVERS, ((start, start + len(GREEN)),))
    no = EvidenceRecord("no", "Why do storks nest?", "Rhine", tiny.RIVERS, ())
    evidence_lines.write(path, [yes, no])
    return path


def rows_of(path: Path) -> list[LearningRow]:
    sources, _ = examples.read([path], tiny.TOKENIZER)
    return [row for source in sources for row in learning_rows(source.example)]


@pytest.fixture
def squad_rows(tmp_path: Path) -> list[LearningRow]:
    return rows_of(tiny.question_set(tmp_path / "set.json"))


@pytest.fixture
def evidence_rows(tmp_path: Path) -> list[LearningRow]:
    return rows_of(lines(tmp_path / "set.jsonl.gz"))


def recipe(folder: Path, passes: float = 60, **changes: Any) -> Recipe:
    start = tiny.checkpoint(folder / "start")
    train = (str(tiny.question_set(folder / "train.json")), str(lines(folder / "train.jsonl.gz")))
    measured = folder / "measured"
    measured.mkdir()
    lines(measured / "some.jsonl.gz")
    data = Data(train=train, held_out=0.0, negatives=0.0, measured=str(measured))
    schedule = Schedule(passes=passes, tokens=512, rate=0.01)
    return replace(Recipe(str(start), data, schedule, evidence=True), **changes)


def teaching(folder: Path, evidence: bool = True, **settings: Any) -> Teaching:
    teacher = tiny.checkpoint(folder / "teacher", layers=3, seed=5, evidence=evidence)
    return Teaching(teachers=(str(teacher),), **settings)


def text_of(row: LearningRow, marked: Any) -> list[str]:
    return [PIECES[number] for number in row.input_ids[marked].tolist()]


def labels_of(row: Row, *places: int) -> Any:
    """Returns labels of evidence for a row: 1 at these tokens, 0 elsewhere in the passage."""
    evidence = np.full(len(row), UNSAID, dtype=np.int8)
    evidence[row.passage] = 0
    evidence[list(places)] = 1
    return evidence


def test_the_sentence_with_the_answer_is_evidence(squad_rows: list[LearningRow]) -> None:
    row = squad_rows[1]
    assert text_of(row, row.evidence == 1)[:3] == ["its", "colour", "is"]
    assert text_of(row, row.evidence == 0)[-2:] == ["basel", "."]


def test_tokens_outside_the_passage_have_no_label(squad_rows: list[LearningRow]) -> None:
    row = squad_rows[0]
    passage = slice(int(row.token_type_ids.argmax()), len(row) - 1)
    assert (np.delete(row.evidence, passage) == UNSAID).all()
    assert (row.evidence[passage] != UNSAID).all()


def test_a_question_that_sentences_answer_points_at_no_span(evidence_rows: list[LearningRow]) -> None:
    yes, no = evidence_rows
    assert (yes.start, yes.end, yes.answers) == (UNKNOWN, UNKNOWN, True)
    assert (no.start, no.end, no.answers) == (0, 0, False)
    batch = collate([yes])
    assert losses.span_loss(torch.randn(1, batch.input_ids.shape[1], 2), batch, loop.CPU).item() == 0


def test_places_that_may_answer_have_no_label(tmp_path: Path) -> None:
    record = EvidenceRecord("a", "Where?", "", "One. Two. Three.", ((0, 4),), ((5, 9),))
    evidence_lines.write(tmp_path / "a.jsonl.gz", [record])
    (row,) = rows_of(tmp_path / "a.jsonl.gz")
    assert text_of(row, row.evidence == 0) == ["three", "."]


def test_a_window_with_a_part_of_the_answers_sentence_does_not_answer() -> None:
    passage = np.arange(1000, 1400, dtype=np.int32)
    evidence = np.zeros(400, dtype=np.int8)
    evidence[100:160] = 1
    rows = learning_rows(examples.Example(np.arange(5, dtype=np.int32) + 50, passage, (150, 155), evidence), 224)
    assert [row.answers for row in rows] == [bool(row.start) for row in rows] == [True, True, False]


def test_a_crop_holds_a_sentence_that_answers() -> None:
    joined = join(np.arange(50, 55, dtype=np.int32), np.arange(1000, 1200, dtype=np.int32))
    evidence = labels_of(joined, 20, 21, 22, 90, 91)
    row = LearningRow(joined.input_ids, joined.token_type_ids, UNKNOWN, UNKNOWN, evidence)
    for seed in range(50):
        piece = crop(row, np.random.default_rng(seed))
        assert set(piece.input_ids[piece.evidence == 1].tolist()) & {*row.input_ids[[20, 90]].tolist()}
        assert (piece.start, piece.end) == (UNKNOWN, UNKNOWN)


def test_the_evidence_of_unlabelled_tokens_costs_nothing(evidence_rows: list[LearningRow]) -> None:
    batch = collate(evidence_rows)
    logits = torch.from_numpy(np.where(batch.evidence == 1, 30.0, -30.0)).float()
    assert losses.evidence_loss(logits, batch, loop.CPU).item() == pytest.approx(0, abs=1e-6)
    logits[torch.from_numpy(batch.evidence == UNSAID)] = 30.0
    assert losses.evidence_loss(logits, batch, loop.CPU).item() == pytest.approx(0, abs=1e-6)


def test_a_reader_without_the_outputs_has_the_spans_loss_alone(squad_rows: list[LearningRow]) -> None:
    batch = collate(squad_rows)
    spans = torch.randn(*batch.input_ids.shape, 2)
    alone = losses.reader_loss(ReaderLogits(spans, None, None), batch, loop.CPU)
    assert alone == losses.span_loss(spans, batch, loop.CPU)


def test_a_tiny_reader_learns_all_outputs(tmp_path: Path) -> None:
    report = qa.train(recipe(tmp_path), tmp_path / "out", tmp_path / "work")
    assert (report.figures["evidence_f1"], report.figures["relevance_auroc"]) == (1, 1)
    assert Checkpoint.load(tmp_path / "out").has_evidence


def test_the_curve_of_a_run_tells_rows_and_figures(tmp_path: Path) -> None:
    qa.train(recipe(tmp_path, passes=2), tmp_path / "out", tmp_path / "work")
    (point,) = [json.loads(line) for line in (tmp_path / "work/curve.jsonl").read_text().splitlines()]
    assert point["rows"] == point["of"] == 2 * 6
    assert {"loss", "evidence_f1", "evidence_f1:some.jsonl.gz", "relevance_auroc"} <= point["figures"].keys()


def test_a_setting_that_is_new_does_not_make_a_run_another_one() -> None:
    settings = Recipe(start="here", schedule=Schedule(passes=6.0))
    assert qa.changed(settings) == {"start.": "here", "schedule.passes": 6.0}


class Fixed(SpanReader):
    """A reader with the same outputs for every row."""

    def __init__(self, start: Path, spans: Any, evidence: Any, relevance: Any) -> None:
        super().__init__(load_reader(start).encoder.sizes, evidence=True)
        self.fixed = spans, evidence, relevance

    def logits(self, hidden: Any) -> ReaderLogits:
        spans, evidence, relevance = self.fixed
        return ReaderLogits(spans[:, : hidden.shape[1]], evidence[:, : hidden.shape[1]], relevance)


def test_figures_count_words_of_sentences_over_rows(tmp_path: Path) -> None:
    joined = join(np.arange(50, 52, dtype=np.int32), np.arange(1000, 1008, dtype=np.int32))
    row = LearningRow(joined.input_ids, joined.token_type_ids, 4, 5, labels_of(joined, 4, 5))
    words = np.array([1, 1, 1, 0, 1, 1, 1, 1], dtype=np.bool_)
    held_out = HeldOutRow(row, joined.passage, np.array([0, 0, 1, 1, 2, 2, 2, 2]), words, "set")
    spans, evidence = torch.zeros(1, 32, 2), torch.zeros(1, 32)
    spans[0, 4, 0] = spans[0, 6, 1] = 9
    evidence[0, 4:8] = 5
    network = Fixed(tiny.checkpoint(tmp_path / "c"), spans, evidence, torch.ones(1))
    measured = figures(network, [held_out], loop.CPU)
    assert measured["span_f1"] in (pytest.approx(2 * 2 / (2 + 2)), pytest.approx(2 * 2 / (3 + 2)))
    # the first two sentences have the highest logit: 2 of 3 words shown are right, and all right ones are shown
    assert measured["evidence_f1"] == pytest.approx(2 * 2 / (3 + 2))


def test_a_checkpoint_keeps_the_outputs_and_has_both_or_none(tmp_path: Path) -> None:
    folder, copy = tiny.checkpoint(tmp_path / "tiny", evidence=True), tmp_path / "copy"
    copy.mkdir()
    write_checkpoint(load_reader(folder), folder, copy)
    start, again = Checkpoint.load(folder), Checkpoint.load(copy)
    assert again.has_evidence
    np.testing.assert_array_equal(again.weights["evidence.weight"], start.weights["evidence.weight"])
    weights = load_file(copy / "model.safetensors")
    some = {name: value for name, value in weights.items() if not name.startswith("relevance")}
    save_file(some, copy / "model.safetensors")
    with pytest.raises(BadModel, match=r"relevance\.weight is missing"):
        Checkpoint.load(copy)


def test_outputs_that_only_the_last_has_stay_as_they_are_in_an_average(tmp_path: Path) -> None:
    plain, four = tiny.checkpoint(tmp_path / "a"), tiny.checkpoint(tmp_path / "b", seed=2, evidence=True)
    average.average([plain, four], tmp_path / "out")
    first, second, mean = (Checkpoint.load(folder).weights for folder in (plain, four, tmp_path / "out"))
    np.testing.assert_array_equal(mean["evidence.weight"], second["evidence.weight"])
    np.testing.assert_allclose(
        mean["qa_outputs.weight"], (first["qa_outputs.weight"] + second["qa_outputs.weight"]) / 2, rtol=1e-5
    )


def test_outputs_that_the_last_lacks_are_refused_in_an_average(tmp_path: Path) -> None:
    folders = [tiny.checkpoint(tmp_path / "a", evidence=True), tiny.checkpoint(tmp_path / "b")]
    with pytest.raises(BadModel, match=r"has evidence.*name it last"):
        average.average(folders, tmp_path / "out")


def test_a_student_learns_evidence_and_relevance_from_its_teacher(
    tmp_path: Path, evidence_rows: list[LearningRow]
) -> None:
    teachers = teaching(tmp_path, soft=1.0, temperature=1.0)
    settings = recipe(tmp_path, teaching=teachers, schedule=Schedule(passes=60, tokens=512, rate=0.005))
    distil.distil(settings, tmp_path / "out", tmp_path / "work")
    batch = collate(evidence_rows)
    teacher, before, after = (
        losses.reader_logits(load_reader(Path(one), evidence=True).eval(), batch, loop.CPU).relevance
        for one in (teachers.teachers[0], settings.start, tmp_path / "out")
    )
    assert teacher is not None
    assert before is not None
    assert after is not None
    assert (after - teacher).abs().max() < 0.3 * (before - teacher).abs().max()


def test_what_teachers_say_of_all_outputs_can_be_kept(tmp_path: Path) -> None:
    settings = recipe(tmp_path, passes=2, teaching=teaching(tmp_path, kept=str(tmp_path / "kept")))
    distil.distil(settings, tmp_path / "out", tmp_path / "work")
    assert [path.name.endswith("-4.bin") for path in (tmp_path / "kept").iterdir()] == [True]


def test_teachers_without_the_outputs_teach_spans(tmp_path: Path) -> None:
    settings = recipe(tmp_path, teaching=teaching(tmp_path, evidence=False))
    report = distil.distil(settings, tmp_path / "out", tmp_path / "work")
    assert report.figures["relevance_auroc"] == 1
