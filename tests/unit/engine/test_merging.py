"""From many shards' replies to one."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shardqa import keys
from shardqa.answer_forms import Form, FormChoice
from shardqa.answer_lines import AnswerWhen, Lines
from shardqa.config import Settings
from shardqa.engine import merging
from shardqa.engine.merging import conclude, lines_of
from shardqa.filters import View
from shardqa.models.reading_record import PassageRecord, ShardReading, SpanRecord
from shardqa.models.scoring import WIDEST, OrderWeights, Ranks, Scoring, Signals
from shardqa.models.subject import Subject
from shardqa.places import QUOTED
from shardqa.question import Question
from shardqa.schema import Candidate, Composed, MergedCandidates, Part, ShardUse, Timing
from tests.unit.models.test_scoring import SCORING


def span(document: str, start: int, end: int, margin: float, rank: float = 10.0) -> SpanRecord:
    """A span in a passage of blanks but for it."""
    text = " " * start + "x" * (end - start)
    passage = PassageRecord(keys.passage("c", document, int(rank)), "T", text, 0, rank_score=rank, null_logit=0.0)
    return SpanRecord(passage, start, end, margin, 0.0, (start, end), 0.0)


STRICT = Lines(unsure=0.3, balanced=0.7, sure=0.9)


def shard(tag: str, *spans: SpanRecord, scoring: Scoring = SCORING) -> ShardReading:
    passages = {span.passage.key: span.passage for span in spans}
    return ShardReading(tag, 1, "m", "q", spans, passages, scoring, us={}, batch=len(passages))


def candidates_of(readings: Sequence[ShardReading], question: str = "q?") -> list[Candidate]:
    """The candidates where all passages that were found have been read."""
    ranks = [passage.rank_score for reading in readings for passage in reading.passages.values()]
    return merging.candidates_of(merging.scored(readings, Subject.of(question), Ranks(ranks, 2)))


def conclusion(
    merged: MergedCandidates, min_score: float | None, when: AnswerWhen = "balanced", form: FormChoice = "auto"
) -> Any:
    question = Question.of("q?", Settings(n_best=3), answer_when=when, min_score=min_score, form=form)
    return conclude(merged, question, "m", None, [], Timing())


def test_what_a_mail_quotes_is_no_answer_where_its_newest_words_are_one() -> None:
    newest, quoted = span("d1", 0, 3, 3.0, rank=10.0), span("d1", 5, 8, 9.0, rank=9.0)
    quoted = replace(quoted, passage=replace(quoted.passage, places=[[0, {"part": QUOTED}]]))
    assert [c.start for c in candidates_of([shard("a", newest, quoted)], "q?")] == [0]
    other = span("d2", 0, 3, 3.0)
    assert [c.start for c in candidates_of([shard("a", other, quoted)], "q?")] == [5, 0]


def test_candidates_of_all_shards_come_best_first() -> None:
    found = candidates_of(
        [shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 5.0), span("d3", 0, 3, 3.0))], "q?"
    )
    assert [c.document for c in found] == ["d2", "d3", "d1"]
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


def test_a_candidate_never_shows_a_higher_score_than_the_one_before_it() -> None:
    likelier_alone = span("d1", 0, 3, 2.0, rank=10.0)
    surer_in_its_words = span("d2", 0, 3, 4.0, rank=1.0)
    steep = replace(SCORING, order=OrderWeights(margin=0.1, lag=-9.0, evidence=0.0, relevance=0.0))
    first, second = candidates_of([shard("a", likelier_alone, surer_in_its_words, scoring=steep)])
    assert (first.document, second.document) == ("d1", "d2")
    assert first.score == second.score


def test_another_answer_has_no_more_of_a_chance_than_the_first_one_leaves() -> None:
    first, *others = candidates_of([shard("a", span("d", 0, 3, 9.0), span("d", 9, 13, 8.0), span("e", 0, 3, 8.5))])
    alike = [one.score for one in others if one.answer == first.answer]
    apart = [one.score for one in others if one.answer != first.answer]
    assert first.score > 0.6
    assert alike[0] > 1 - first.score
    assert apart[0] <= 1 - first.score


def test_of_overlapping_spans_of_one_document_the_better_stays() -> None:
    found = candidates_of(
        [shard("a", span("d", 10, 20, 2.0), span("d", 15, 25, 4.0), span("d", 20, 22, 1.0), span("e", 15, 25, 1.0))],
    )
    assert {(c.document, c.start) for c in found} == {("d", 15), ("e", 15)}


def test_a_candidate_is_scored_as_its_reader_says() -> None:
    (found,) = candidates_of([shard("a", span("d", 0, 3, 2.0))], "two words")
    alone = Signals(margin=2.0, lag=0.0, gap=WIDEST, fall=1.0, length=math.log(3), rank=math.log1p(10 / math.log(2)))
    assert found.score == pytest.approx(SCORING.confidence(alone))


def test_an_answer_that_another_contests_is_less_sure() -> None:
    lonely = candidates_of([shard("a", span("d", 0, 3, 2.0))])[0]
    contested = candidates_of([shard("a", span("d", 0, 3, 2.0)), shard("b", span("e", 0, 4, 1.9))])[0]
    assert contested.score < lonely.score


def test_scores_are_the_same_however_the_spans_are_spread_over_shards() -> None:
    spans = [span("d", 0, 3, 2.0), span("e", 0, 4, 1.9, rank=8.0), span("f", 0, 5, 1.0, rank=7.0)]
    together = candidates_of([shard("a", *spans)])
    apart = candidates_of([shard("a", spans[2], spans[0]), shard("a", spans[1])])
    assert together == apart


def test_nothing_is_answered_below_the_readers_threshold() -> None:
    assert lines_of([shard("a"), shard("b")]) == SCORING.below


def test_while_a_reader_is_being_replaced_the_stricter_threshold_holds() -> None:
    assert lines_of([shard("a"), shard("b", scoring=replace(SCORING, below=STRICT))]) == STRICT


def test_the_order_of_the_shards_does_not_matter() -> None:
    one, two = shard("a", span("d1", 0, 3, 1.0)), shard("b", span("d2", 0, 3, 1.0))
    assert candidates_of([one, two]) == candidates_of([two, one])


def part(text: str, start: int = 0) -> Part:
    return Part(text=text, corpus="c", document="d", title="T", start=start, end=start + len(text), score=0.5)


PARTS: dict[Form, list[Part]] = {
    "span": [part("It is red.")],
    "sentences": [part("It is red."), part("It glows.", 40)],
    "list": [part("red"), part("blue", 9)],
}


def merged(score: float = 0.5, below: Lines = SCORING.below, auto: Form = "span") -> MergedCandidates:
    """An answer of this score in each form; its span is the word "red"."""
    heads = {form: part("red", 6) if form == "span" else parts[0] for form, parts in PARTS.items()}
    by_form = {
        form: Composed(
            head=heads[form], parts=parts, score=score, below=below, passage="p", passage_start=0, metadata={}
        )
        for form, parts in PARTS.items()
    }
    near = [part("comes near")]
    return MergedCandidates(candidates=[], below=below, shards=[], composed=by_form, auto=auto, likeliest=near)


@pytest.mark.parametrize(("when", "refused"), [("unsure", False), ("balanced", False), ("sure", True)])
def test_the_user_chooses_how_sure_an_answer_has_to_be(when: AnswerWhen, refused: bool) -> None:
    lines = Lines(unsure=0.0, balanced=0.5, sure=0.51)
    answer = conclusion(merged(below=lines), None, when)
    assert (answer.no_answer, answer.needed, answer.lines) == (refused, lines.of(when), lines)


@pytest.mark.parametrize(("min_score", "refused"), [(0.0, False), (1.0, True)])
def test_min_score_decides_between_answer_and_refusal(min_score: float, refused: bool) -> None:
    answer = conclusion(merged(), min_score)
    assert (answer.no_answer, answer.answer) == (refused, None if refused else "red")
    assert [one.text for one in answer.parts] == ["comes near" if refused else "It is red."]
    assert [one.text for one in answer.evidence] == ([] if refused else ["It is red."])


@pytest.mark.parametrize(
    ("wording", "score", "absent", "words", "near"),
    [
        ("How many Mills?", 0.04, ["mani", "mill"], ["Mills"], []),
        ("Which mill burns?", 0.3, ["burn"], ["burns"], ["comes near"]),
        ("Xyzzy?", 0.3, ["xyzzi"], ["Xyzzy"], []),
    ],
)
def test_what_is_about_something_else_is_not_near(
    wording: str, score: float, absent: list[str], words: list[str], near: list[str]
) -> None:
    question = Question.of(wording, Settings(), min_score=0.9)
    answer = conclude(merged(score).model_copy(update={"absent": absent}), question, "m", None, [], Timing())
    assert (answer.absent, [part.text for part in answer.parts]) == (words, near)


def test_an_answer_that_lacks_a_name_is_never_likely() -> None:
    question = Question.of("Who built the Berta?", Settings(), min_score=0.1)
    answer = conclude(merged(0.97).model_copy(update={"absent": ["berta"]}), question, "m", None, [], Timing())
    assert (answer.answer, answer.absent, answer.score) == ("red", ["Berta"], 0.4)


@pytest.mark.parametrize("reader", ["", keys.MANY_READER])
def test_a_language_is_answered_by_the_reader_that_knows_it_alone(reader: str) -> None:
    question = Question.of("¿quién es el capitán?", Settings(), min_score=0.0)
    update = {"reader": reader, "absent": ["capitan"]}
    answer = conclude(merged(0.97).model_copy(update=update), question, "m", None, [], Timing())
    assert (answer.answer, answer.score, answer.absent) == ("red" if reader else None, 0.97 if reader else 0.0, [])


def test_a_name_that_the_passage_spells_otherwise_is_not_absent() -> None:
    question = Question.of("Who built the Maschwits?", Settings(), min_score=0.1)
    found = merged(0.97).model_copy(update={"absent": ["maschwit"]})
    told = found.composed["span"].model_copy(update={"passage": "Ann built the Maschwitz. It is red."})
    answer = conclude(found.model_copy(update={"composed": {"span": told}}), question, "m", None, [], Timing())
    assert (answer.absent, answer.score) == ([], 0.97)


@pytest.mark.parametrize("form", ["span", "sentences"])
def test_an_answer_has_one_score_in_every_list(form: FormChoice) -> None:
    first, second = candidates_of([shard("a", span("d", 6, 9, 9.0), span("e", 0, 3, 8.5))])
    found = merged(0.3).model_copy(update={"candidates": [first, second]})
    answer = conclusion(found, 0.1, form=form)
    assert answer.n_best[0].score == answer.score == 0.3
    assert answer.n_best[1].score <= 0.3


def test_no_candidate_is_no_answer() -> None:
    answer = conclusion(merged().model_copy(update={"composed": {}}), None)
    assert (answer.answer, answer.no_answer, answer.score) == (None, True, 0.0)


@pytest.mark.parametrize(
    ("form", "text", "start"),
    [("span", "red", 6), ("sentences", "It is red.\nIt glows.", 0), ("list", "red\nblue", 0)],
)
def test_an_answer_has_the_form_that_is_asked_for(form: Form, text: str, start: int) -> None:
    asked, auto = conclusion(merged(), 0.0, form=form), conclusion(merged(auto=form), 0.0)
    assert (asked.form, asked.answer, asked.start, asked.parts) == (form, text, start, PARTS[form])
    assert auto == asked


def test_whom_documents_are_hidden_from_sees_neither_times_nor_keys_of_shards() -> None:
    use = ShardUse(node="a:1", tag="06S", passages=1, cached=False, key="answer:c:{06S}:7", us={"run": 5})
    asked = merged().model_copy(update={"shards": [use]})
    for view, expected in ((None, use), (View(title="T"), use.model_copy(update={"us": {}, "key": ""}))):
        question = Question.of("q?", Settings(), filter=view)
        assert conclude(asked, question, "m", None, [], Timing()).shards == [expected]
