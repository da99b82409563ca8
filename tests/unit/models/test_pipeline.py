"""`shardqa.pipeline` with the shipped reader: call forms, shapes, parameters and faults."""

from pathlib import Path
from typing import Any

import pytest

import shardqa
from shardqa.errors import BadModel
from shardqa.models.pipeline import QuestionAnswering

CONTEXT = "My name is Wolfgang and I live in Berlin"
LIVE, NAME = "Where do I live?", "What is my name?"


@pytest.fixture(scope="module")
def qa() -> QuestionAnswering:
    return shardqa.pipeline("question-answering", threads=1)


def test_one_question_gives_one_answer_with_its_place(qa: QuestionAnswering) -> None:
    answer = qa(question=LIVE, context=CONTEXT)
    assert {name: type(value) for name, value in answer.items()} == {
        "score": float,
        "start": int,
        "end": int,
        "answer": str,
    }
    assert CONTEXT[answer["start"] : answer["end"]] == answer["answer"] == "Berlin"


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), {"question": [LIVE, NAME], "context": CONTEXT}),
        ((), {"question": [LIVE, NAME], "context": [CONTEXT, CONTEXT]}),
        (([{"question": LIVE, "context": CONTEXT}, {"question": NAME, "context": CONTEXT}],), {}),
        ((), {"data": [{"question": LIVE, "context": CONTEXT}, {"question": NAME, "context": CONTEXT}]}),
    ],
)
def test_many_questions_give_a_list(qa: QuestionAnswering, args: Any, named: Any) -> None:
    assert [one["answer"] for one in qa(*args, **named)] == ["Berlin", "Wolfgang"]


def test_a_list_of_one_gives_one_answer(qa: QuestionAnswering) -> None:
    assert qa(question=[LIVE], context=[CONTEXT])["answer"] == "Berlin"
    assert qa(LIVE, CONTEXT)["answer"] == "Berlin"


def test_an_iterator_gives_an_iterator(qa: QuestionAnswering) -> None:
    found = qa({"question": question, "context": CONTEXT} for question in (LIVE, NAME))
    assert next(found)["answer"] == "Berlin"
    assert next(found)["answer"] == "Wolfgang"


def test_top_k_gives_as_many_best_first(qa: QuestionAnswering) -> None:
    found = qa(question=LIVE, context=CONTEXT, top_k=3)
    assert len(found) == 3
    assert found[0]["score"] >= found[1]["score"] >= found[2]["score"]
    assert len({one["answer"].lower() for one in found}) == 3
    assert len(qa(question=LIVE, context="Berlin", top_k=3, align_to_words=True) or []) >= 1


def test_an_answer_that_is_not_there_is_empty_where_that_is_asked_for(qa: QuestionAnswering) -> None:
    asked = {"question": "What does the ferry cost?", "context": CONTEXT}
    assert qa(**asked, handle_impossible_answer=True)["answer"] == ""
    assert qa(**asked)["answer"]


def test_a_long_context_is_read_in_windows(qa: QuestionAnswering) -> None:
    context = "The weather was fine that day. " * 200 + CONTEXT + ". The weather was fine that day." * 200
    found = qa(question=LIVE, context=context)
    assert context[found["start"] : found["end"]] == found["answer"] == "Berlin"
    assert qa(question=LIVE, context=context, max_seq_len=64, doc_stride=16)["answer"] == "Berlin"


def test_max_answer_len_bounds_the_wordpieces(qa: QuestionAnswering) -> None:
    asked = {"question": "Who am I?", "context": CONTEXT, "top_k": 20, "align_to_words": False}
    assert max(len(one["answer"].split()) for one in qa(**asked, max_answer_len=2)) == 2


def test_defaults_are_given_when_it_is_made() -> None:
    qa = shardqa.pipeline(top_k=2, threads=1)
    assert len(qa(question=LIVE, context=CONTEXT)) == 2
    assert qa(question=LIVE, context=CONTEXT, top_k=1)["answer"] == "Berlin"


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        ({"question": LIVE}, ValueError, "give question= and context="),
        ({"question": [LIVE, NAME], "context": [CONTEXT]}, ValueError, "same lengths"),
        ({"question": "", "context": CONTEXT}, ValueError, "cannot be empty"),
        ({"data": [{"question": LIVE}]}, KeyError, "keys"),
        ({"data": [{"question": LIVE, "context": None}]}, ValueError, "cannot be None"),
        ({"question": LIVE, "context": CONTEXT, "top_k": 0}, ValueError, "top_k"),
        ({"question": LIVE, "context": CONTEXT, "max_answer_len": 0}, ValueError, "max_answer_len"),
        ({"question": LIVE, "context": CONTEXT, "doc_stride": 500}, ValueError, "doc_stride"),
        ({"question": LIVE, "context": CONTEXT, "max_seq_len": 1000}, ValueError, "512"),
        ({"question": "why " * 400, "context": CONTEXT}, ValueError, "fewer words"),
        ({"question": LIVE, "context": CONTEXT, "topp": 3}, TypeError, "topp"),
    ],
)
def test_what_can_t_be_understood_is_told(
    qa: QuestionAnswering, named: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        qa(**named)


def test_a_pipeline_that_is_not_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="summarization"):
        shardqa.pipeline("summarization")
    with pytest.raises(ValueError, match="processors"):
        shardqa.pipeline(device="cuda")
    with pytest.raises(BadModel, match=r"no model\.onnx"):
        shardqa.pipeline(model=tmp_path)


def test_a_context_without_words_has_no_answer(qa: QuestionAnswering) -> None:
    assert qa(question=LIVE, context=" ") == []
    assert qa(question=LIVE, context=" ", handle_impossible_answer=True)["answer"] == ""
