"""Rows of several tasks: which labels share a row, and where in it they stand."""

from collections.abc import Sequence

from shardqa_toolchain.multitask.lines import (
    AnswerableLabel,
    Label,
    SequenceLabel,
    SpanLabel,
    TaskExample,
    WordLabels,
)
from shardqa_toolchain.multitask.tasks import CONTROL, HEADS, PLAIN, Task, TaskSet
from shardqa_toolchain.training.targets import IGNORED, TaskRow, collate, task_rows
from toolchain.tests.tiny import TOKENIZER

TEXT, QUESTION = "embeddings of rivers", "What is it?"
ROW = 224

TASKS = TaskSet(
    HEADS,
    (
        Task("qa", "span"),
        Task("said", "answerable"),
        Task("topic", "sequence", ("lake", "river")),
        Task("parts", "tokens", ("O", "x"), PLAIN),
    ),
)
CONTROLS = TaskSet(CONTROL, tuple(Task(t.name, t.kind, t.labels, t.scheme, 1 + n) for n, t in enumerate(TASKS.tasks)))
# [CLS] what is it ? [SEP] em ##bed ##ding ##s of rivers [SEP]
PASSAGE = 6


def example(label: Label, question: str = "", text: str = TEXT) -> TaskExample:
    return TaskExample(question, text, TOKENIZER.question(question), TOKENIZER.passage(text), label)


def targets(rows: Sequence[TaskRow]) -> list[dict[str, list[int]]]:
    return [{name: value.tolist() for name, value in row.targets.items()} for row in rows]


def test_labels_of_one_text_and_question_share_a_row() -> None:
    labels = {
        "qa": [example(SpanLabel((0, 3), ("embeddings",)), QUESTION)],
        "said": [example(AnswerableLabel(True), QUESTION)],
    }
    assert targets(task_rows(TASKS, labels, ROW)) == [{"qa": [PASSAGE, PASSAGE + 3], "said": [1]}]


def test_a_label_of_the_text_alone_is_learnt_with_every_question_and_without() -> None:
    questions = [example(AnswerableLabel(False), one) for one in (QUESTION, "Who?")]
    rows = task_rows(TASKS, {"said": questions, "topic": [example(SequenceLabel("river"))]}, ROW)
    assert targets(rows) == [{"said": [0], "topic": [1]}, {"said": [0], "topic": [1]}, {"topic": [1]}]
    assert len(rows[-1]) == len(TOKENIZER.passage(TEXT)) + 3


def test_two_labels_of_one_task_for_the_same_have_a_row_each() -> None:
    twice = [example(SequenceLabel("lake")), example(SequenceLabel("river"))]
    assert targets(task_rows(TASKS, {"topic": twice}, ROW)) == [{"topic": [0]}, {"topic": [1]}]


def test_words_are_labelled_at_their_first_wordpiece() -> None:
    rows = task_rows(TASKS, {"parts": [example(WordLabels(("x", "O", "x")))]}, ROW)
    assert targets(rows) == [{"parts": [IGNORED, IGNORED, 1, IGNORED, IGNORED, IGNORED, 0, 1, IGNORED]}]


def test_a_window_without_the_whole_answer_says_not_here() -> None:
    text = "rivers " * 300
    pieces = (250, 251)
    labels = {
        "qa": [example(SpanLabel(pieces, ("x",)), QUESTION, text)],
        "said": [example(AnswerableLabel(True, pieces), QUESTION, text)],
    }
    assert targets(task_rows(TASKS, labels, ROW)) == [
        {"qa": [0, 0], "said": [0]},
        {"qa": [PASSAGE + 122, PASSAGE + 123], "said": [1]},
    ]


def test_words_of_a_long_text_are_labelled_in_every_window() -> None:
    row = task_rows(TASKS, {"parts": [example(WordLabels(("x",) * 300), text="rivers " * 300)]}, ROW)[1]
    assert row.targets["parts"].tolist() == [IGNORED, IGNORED, *[1] * (300 - 128), IGNORED]


def test_with_control_tokens_every_task_has_its_own_row() -> None:
    labels = {
        "qa": [example(SpanLabel((4, 5), ("of rivers",)), QUESTION)],
        "topic": [example(SequenceLabel("river"), QUESTION)],
    }
    qa, topic = task_rows(CONTROLS, labels, ROW)
    assert [row.input_ids[1] for row in (qa, topic)] == [1, 3]
    union = CONTROLS.union
    tags = [union[place] for place in qa.targets["qa"].tolist() if place != IGNORED]
    assert tags == ["O", "O", "O", "O", "B-answer", "I-answer"]
    assert topic.targets["topic"].tolist() == [union.index("river"), *[IGNORED] * (len(topic) - 1)]


def test_equal_labels_of_two_tasks_share_a_class() -> None:
    assert CONTROLS.union == ("O", "B-answer", "I-answer", "unanswerable", "answerable", "lake", "river", "x")
    assert CONTROLS.columns(CONTROLS.tasks[3]).tolist() == [0, 7]


def test_a_batch_ignores_the_tasks_that_a_row_has_no_label_for() -> None:
    rows = task_rows(
        TASKS, {"topic": [example(SequenceLabel("lake"))], "said": [example(AnswerableLabel(True), "Who?", "a")]}, ROW
    )
    batch = collate(rows)
    assert sorted(batch.targets["said"].tolist()) == [[IGNORED], [1]]
    assert sorted(batch.targets["topic"].tolist()) == [[IGNORED], [0]]
    assert "qa" not in batch.targets
