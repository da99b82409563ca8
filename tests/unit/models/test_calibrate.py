"""Fitting the scores from candidates made up for it."""

import random
from pathlib import Path

from shardqa.models import calibrate
from shardqa.models.scoring import Scoring


def question(number: int, domain: str, kind: str, rival_rank: float) -> dict[str, object]:
    """The right passage ranks 10; a rival says something else in a better worded sentence, now and then."""
    noise = random.Random(f"{domain} {kind} {number}")
    own = {"text": "right", "span_logit": noise.gauss(5, 1), "null_logit": 0.0, "rank_score": 10.0}
    rival = {"text": "other", "span_logit": noise.gauss(5, 2), "null_logit": 0.0, "rank_score": rival_rank}
    return {
        "id": f"{number}",
        "domain": domain,
        "kind": kind,
        "question": "where is it said",
        "answers": ["right"] if kind == "answerable" else [],
        "ranks": [10.0, rival_rank],
        "candidates": [own, rival] if kind == "answerable" else [rival | {"rank_score": 10.0}, rival],
    }


def fitted(*records: dict[str, object]) -> Scoring:
    return calibrate.fit([calibrate._question(record, "none") for record in records])


def test_domains_without_trick_questions_teach_the_order_as_well() -> None:
    tricky = [question(n, "tricky", kind, 9.0) for n in range(60) for kind in ("answerable", "trick")]
    other = [question(n, "other", kind, 2.0) for n in range(60) for kind in ("answerable", "absent")]
    alone, both = fitted(*tricky).span, fitted(*tricky, *other).span
    assert both.lag < 0
    assert abs(both.lag / both.margin - alone.lag / alone.margin) > 0.5


def test_the_shipped_reader_believes_the_passage_with_the_name_before_a_better_sentence_of_another() -> None:
    """Four logits do not make up for half of the rank: a row of a table is read worse than a plain sentence."""
    scoring = Scoring.load(Path(__file__).parents[3] / "models" / "reader-v3-int8")
    of_table, of_sentence = scoring.score(4.0, 0.0, 12.0, 12.0), scoring.score(8.0, 0.0, 6.5, 12.0)
    assert of_table > of_sentence
