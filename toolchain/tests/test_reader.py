"""The shipped reader's answers on slices of SQuAD's dev sets, and a real checkpoint against what becomes of it."""

import os
from pathlib import Path

import pytest

from shardqa.models import shipped
from shardqa.models.scoring import Scoring
from shardqa_toolchain import cards
from shardqa_toolchain.measure import measure, read_all
from shardqa_toolchain.no_answer_metrics import no_answer_metrics

SHARED = Path(os.environ.get("SHARDQA_SHARED", Path(__file__).parents[3] / "shared"))
DEV = SHARED / "data" / "squad" / "dev-v1.1.json.gz"
DEV2 = SHARED / "data" / "squad" / "dev-v2.0.json.gz"
CHECKPOINT = SHARED / "models" / "reader-v0"

QUESTIONS = 200
# The first slice scored 75.5 and 82.9 when the reader was made; the rest is for other processors.
EXACT_FLOOR, F1_FLOOR, REFUSAL_FLOOR = 75.0, 82.4, 70.0


@pytest.mark.skipif(not DEV.exists(), reason=f"needs {DEV.name} of the shared data (SHARDQA_SHARED names its folder)")
def test_the_shipped_reader_answers_a_slice_of_squad() -> None:
    scores = measure(shipped.folder(), DEV, limit=QUESTIONS, threads=2)
    assert scores.questions == QUESTIONS
    assert scores.exact_match >= EXACT_FLOOR
    assert scores.f1 >= F1_FLOOR


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


@pytest.mark.skipif(not DEV2.exists(), reason=f"needs {DEV2.name} of the shared data (SHARDQA_SHARED names its folder)")
def test_the_shipped_reader_refuses_what_a_slice_of_squad_2_does_not_answer() -> None:
    found = no_answer_metrics(
        list(read_all(shipped.folder(), DEV2, limit=QUESTIONS, threads=2)), Scoring.load(shipped.folder())
    )
    assert found.f1 >= REFUSAL_FLOOR
