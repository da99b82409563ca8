"""The shipped reader's answers on a slice of SQuAD 2's dev set, and a real checkpoint against what becomes of it."""

import os
from pathlib import Path

import pytest

from shardqa.models import shipped
from shardqa.models.scoring import Scoring
from shardqa_toolchain import cards
from shardqa_toolchain.measure import read_all, scores
from shardqa_toolchain.no_answer_metrics import no_answer_metrics

SHARED = Path(os.environ.get("SHARDQA_SHARED", Path(__file__).parents[3] / "shared"))
DEV = SHARED / "data" / "squad" / "dev-v2.0.json.gz"
CHECKPOINT = SHARED / "models" / "reader-v0"

QUESTIONS = 200
# It scored 76.0, 82.8 and 72.1 when the reader was made; the rest is for other processors.
EXACT_FLOOR, F1_FLOOR, REFUSAL_FLOOR = 75.0, 82.3, 71.0


@pytest.mark.skipif(not DEV.exists(), reason=f"needs {DEV.name} of the shared data (SHARDQA_SHARED names its folder)")
def test_the_shipped_reader_answers_a_slice_of_squad_2_and_refuses_what_it_does_not_answer() -> None:
    reads = list(read_all(shipped.folder(), DEV, limit=QUESTIONS, threads=2))
    answerable = scores([one for one in reads if one.question.answers])
    assert 0 < answerable.questions < len(reads) == QUESTIONS
    assert answerable.exact_match >= EXACT_FLOOR
    assert answerable.f1 >= F1_FLOOR
    assert no_answer_metrics(reads, Scoring.load(shipped.folder())).f1 >= REFUSAL_FLOOR


@pytest.mark.slow
@pytest.mark.skipif(not CHECKPOINT.exists(), reason=f"needs {CHECKPOINT.name} of the shared data")
def test_a_real_checkpoint_answers_the_same_in_int8(tmp_path: Path) -> None:
    from shardqa_toolchain.conversion.quantize import quantize

    verdict = quantize(CHECKPOINT, tmp_path / "int8")
    assert verdict.passed
    assert verdict.span_agreement is not None
    assert verdict.span_agreement >= 90


def test_the_conversion_of_the_shipped_reader_passed_its_check() -> None:
    steps = {step.name: step for step in cards.Card.load(shipped.folder()).steps}
    verdict = steps["quantize"].verdict
    assert verdict is not None
    assert verdict["passed"]
