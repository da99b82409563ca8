"""Sentences that are shown, of those that were read."""

from dataclasses import replace

import pytest

from shardqa import keys
from shardqa.engine import merging, parts
from shardqa.models.evidence import Sentence
from shardqa.models.reading_record import PassageRecord, ShardReading, SpanRecord
from shardqa.models.scoring import EvidenceWeights, Ranks, Scoring, shipped_scoring
from shardqa.models.subject import Subject
from tests.unit.engine.test_merging import candidates_of

TEXT = "It rained. So the race was put off. Nobody minded. Tea was served. Cakes came too. All went home."
SENTENCES = [f"{one}." for one in TEXT.rstrip(".").split(". ")]
PLAIN = EvidenceWeights(bias=0.0, margin=1.0, near=0.0)


def passage(
    logits: dict[int, float], text: str = TEXT, first: int = 0, rank: float = 10.0, null: float = 0.0
) -> PassageRecord:
    """A passage that begins at character `first` of its document, of whose sentences those named have these logits."""
    places = [(text.index(one), len(one)) for one in f"{text} ".split(". ")[:-1]]
    sentences = [
        Sentence(first + begin, first + begin + size + 1, logits.get(n, -9.0)) for n, (begin, size) in enumerate(places)
    ]
    return PassageRecord("", "T", text, first, rank_score=rank, null_logit=null, sentences=sentences)


def reply(tag: str = "a", evidence: EvidenceWeights = PLAIN, **passages: PassageRecord) -> ShardReading:
    """A reading of passages named as d0; the span of each is its likeliest sentence's first word."""
    read = [replace(one, key=keys.passage("c", name[:1], int(name[1:]))) for name, one in passages.items()]
    best = [max(one.sentences, key=lambda sentence: sentence.logit) for one in read]
    spans = [
        SpanRecord(passage, start, start + 2, logit, passage.null_logit, (start, end), 0.0)
        for passage, (start, end, logit, _) in zip(read, best, strict=True)
    ]
    keyed = {passage.key: passage for passage in read}
    return ShardReading(tag, 1, "m", "q", spans, keyed, scoring(evidence), us={}, batch=len(read))


def scoring(evidence: EvidenceWeights) -> Scoring:
    return replace(shipped_scoring(), evidence=evidence)


def supporting(*replies: ShardReading) -> list[str]:
    found = parts.supporting(parts.sentences_of(replies), candidates_of([*replies])[0])
    assert all(one.end - one.start == len(one.text) for one in found)
    return [one.text for one in found]


def likeliest(*replies: ShardReading) -> list[str]:
    return [one.text for one in parts.likeliest(parts.sentences_of(replies))]


def test_an_answers_own_sentence_is_shown_however_unlikely() -> None:
    assert supporting(reply(d0=passage({2: -5.0}))) == ["Nobody minded."]


def test_likely_sentences_of_its_document_are_shown_beside_it_in_their_order() -> None:
    assert supporting(reply(d0=passage({3: 5.0, 0: 4.0, 5: -1.0}))) == ["It rained.", "Tea was served."]


def test_neighbours_are_one_part_with_the_likelier_ones_score() -> None:
    replies = [reply(d0=passage({0: 4.0, 1: 5.0}))]
    (one,) = parts.supporting(parts.sentences_of(replies), candidates_of(replies)[0])
    assert one.text == "It rained. So the race was put off."
    assert one.score == pytest.approx(scoring(PLAIN).evidence_chance(5.0, 0.0))


def test_of_a_row_the_cells_are_quoted_and_within_a_cell_its_own_words() -> None:
    """The text of a row is a sentence that shardqa wrote; an item of a list in a cell stands in the file."""
    text = "Weser Stahl has City: Bremen; Goods: steel, coal."
    cells = [("", "Weser Stahl"), ("City", "Bremen"), ("Goods", "steel, coal")]
    read = reply(d0=replace(passage({0: 5.0}, text), places=[[0, {"row": 2, "cells": cells}]]))
    (row,) = parts.supporting(parts.sentences_of([read]), candidates_of([read])[0])
    assert (row.written, row.quote) == (True, "Weser Stahl · Bremen · steel, coal")
    item = row.model_copy(update={"text": "coal"})
    assert (item.written, item.quote) == (False, "coal")


def test_another_documents_sentences_do_not_support_it() -> None:
    assert supporting(reply(d0=passage({0: 5.0}), e0=passage({3: 4.0}))) == ["It rained."]


def test_another_entrys_sentences_do_not_support_it() -> None:
    marks = [[0, {"headings": ["Rain"]}], [TEXT.index("Tea"), {"headings": ["Tea"]}]]
    read = reply(d0=replace(passage({0: 5.0, 3: 4.0}), places=marks))
    assert supporting(read) == ["It rained."]


def test_four_parts_are_shown_at_most_the_likeliest() -> None:
    text = " ".join(f"It is {n}." for n in range(12))
    found = supporting(reply(d0=passage({n: 10.0 - n for n in range(0, 12, 2)}, text)))
    assert found == [f"It is {n}." for n in (0, 2, 4, 6)]


def test_a_sentence_between_two_parts_joins_them_even_past_four() -> None:
    text = " ".join(f"It is {n}." for n in range(8))
    found = supporting(reply(d0=passage({0: 9.0, 2: 8.0, 4: 7.0, 6: 6.0, 1: 5.0}, text)))
    assert found == ["It is 0. It is 1. It is 2.", "It is 4.", "It is 6."]


def test_a_part_goes_on_in_the_passage_that_overlaps_its_own() -> None:
    start = TEXT.index("Nobody")
    later = passage({0: 4.0, 1: 4.5}, TEXT[start:], start)
    earlier = passage({1: 5.0, 2: 4.0}, TEXT[: TEXT.index(" Tea")])
    assert supporting(reply(d0=earlier, d1=later)) == ["So the race was put off. Nobody minded. Tea was served."]


def test_where_nothing_is_sure_the_best_sentences_of_all_documents_come_best_first() -> None:
    found = likeliest(reply(d0=passage({3: -2.0, 0: -4.0})), reply("b", e0=passage({1: -3.0}, "A b. C d. E f.")))
    assert found == ["Tea was served.", "C d.", "It rained."]


def test_a_heading_is_no_sentence_that_is_shown() -> None:
    headed = replace(passage({0: 5.0, 1: 1.0}), places=[[0, {"headings": ["It rained."]}]])
    assert likeliest(reply(d0=headed))[0] == answering(reply(d0=headed))[0] == "So the race was put off."


def test_what_overlaps_or_repeats_a_better_sentence_is_left_out() -> None:
    start = TEXT.index("Nobody")
    again = passage({0: 4.0}, TEXT[start:], start)
    repeated = passage({0: 3.0, 1: 2.0}, "nobody minded! It rained a lot.".replace("!", "."))
    assert likeliest(reply(d0=passage({2: 5.0, 1: 1.0}), d1=again, e0=repeated)) == [
        "Nobody minded.", "It rained a lot.", "So the race was put off.",
    ]  # fmt: skip


def test_of_a_sentence_that_a_passage_cuts_and_the_whole_one_the_better_is_shown() -> None:
    start = TEXT.index("the race")
    cut = passage({0: 5.0}, TEXT[start:], start)
    assert likeliest(reply(d0=passage({1: 4.0, 0: 3.0}), d1=cut)) == [
        "the race was put off.", "It rained.", "Nobody minded.",
    ]  # fmt: skip


def test_parts_are_the_same_however_passages_are_spread_over_shards() -> None:
    one, other = passage({0: 3.0, 2: 2.0}), passage({1: 3.0}, "A b. C d. E f.")
    apart = [reply("a", d0=one), reply("b", e0=other)]
    together = [reply("a", e0=other, d0=one)]
    for of in (supporting, likeliest):
        assert of(*apart) == of(*reversed(apart)) == of(*together)


def answering(*replies: ShardReading) -> list[str]:
    return [one.text for one in parts.answering(parts.sentences_of(replies))]


def test_sentences_answer_in_the_order_of_the_one_document_that_has_the_best() -> None:
    other = passage({1: 6.0, 2: 4.0}, "A b. C d. E f.")
    assert answering(reply(d0=passage({3: 5.0, 0: 7.0, 5: -9.0})), reply("b", e0=other)) == [
        "It rained.",
        "Tea was served.",
    ]


def test_the_best_sentence_answers_though_no_sentence_is_likely() -> None:
    assert answering(reply(d0=passage({3: -5.0, 0: -7.0}))) == ["Tea was served."]


def items(*replies: ShardReading) -> list[str]:
    ranks = [one.rank_score for reply in replies for one in reply.passages.values()]
    return [one.text for one in parts.items(merging.scored(replies, Subject.of("q"), Ranks(ranks, 9)))]


def listing(document: str, text: str, logit: float) -> ShardReading:
    """A reply with a passage that is all one span."""
    whole = reply(document, PLAIN, **{f"{document}0": passage({0: logit}, f"{text}.")})
    return replace(whole, spans=[replace(span, end=len(text)) for span in whole.spans])


def test_a_list_holds_what_the_likely_spans_of_all_documents_enumerate_once_each() -> None:
    first, near = listing("d", "red, green and blue", 5.0), listing("e", "Blue; or yellow", 3.0)
    assert items(first, near, listing("f", "black", 1.0)) == ["red", "green", "blue", "yellow"]


def test_a_sentence_of_signs_alone_is_no_part() -> None:
    assert likeliest(reply(d0=passage({0: 9.0}, "—. It rained."))) == ["It rained."]


def test_a_part_says_where_in_the_file_it_begins() -> None:
    marked = replace(passage({3: 4.0}), places=[[0, {"page": 1}], [TEXT.index("Tea"), {"page": 2}]])
    (one, *_) = parts.likeliest(parts.sentences_of([reply(d0=marked)]))
    assert (one.text, str(one.place)) == ("Tea was served.", "p. 2")
