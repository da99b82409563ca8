"""The ways of answering that the ladder compares give the same answers."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from shardqa.errors import SetupError
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.ladder import cache, inputs, serving
from shardqa_toolchain.ladder.job import CACHE, ONNX, TORCH, TRANSFORMERS, Job, LadderServer
from shardqa_toolchain.measure import QuestionRows, Read
from toolchain.tests import tiny

LOGITS = 1e-3  # difference of span logits that the order of sums explains


def job(folder: Path | str, backend: str = ONNX, longest: int = 384, **others: bool) -> Job:
    return Job(backend, (str(folder),), "", 1, longest, 0.0, **others)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def readings() -> list[QuestionRows]:
    return list(inputs.readings(inputs.draw(None, 3), Tokenizer.load(shipped.folder()), 384))


def answers(what: Job, readings: Sequence[QuestionRows]) -> list[Read]:
    with serving.opened(what) as server:
        return server.answers(readings)


def assert_same(reads: Sequence[Read], others: Sequence[Read]) -> None:
    assert [read.answer for read in reads] == [read.answer for read in others]
    for name in ("span_logit", "null_logit"):
        logits, other_logits = ([getattr(read, name) for read in each] for each in (reads, others))
        assert logits == pytest.approx(other_logits, abs=LOGITS)


def test_padded_rows_are_answered_as_others(readings: list[QuestionRows]) -> None:
    assert_same(answers(job(shipped.folder(), padded=True), readings), answers(job(shipped.folder()), readings))


def test_questions_together_are_answered_as_alone(readings: list[QuestionRows]) -> None:
    with serving.opened(job(shipped.folder())) as server:
        alone = [found for reading in readings for found in server.answers([reading])]
        assert_same(server.answers(readings), alone)


def test_the_cache_gives_what_the_network_gave(readings: list[QuestionRows]) -> None:
    class Once:
        """Answers only so many questions."""

        def __init__(self, server: LadderServer) -> None:
            self.server, self.count = server, 0

        def answers(self, readings: Sequence[QuestionRows]) -> list[Read]:
            self.count += len(readings)
            return self.server.answers(readings)

    with cache.redis_server() as client, serving.opened(job(shipped.folder())) as server:
        once = Once(server)
        remembering = cache.CacheServer(once, client)
        first = remembering.answers(readings)
        assert remembering.answers(readings) == first
        assert once.count == len(readings)


def test_without_redis_the_cache_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"redis-server is not installed.*--no-sides"):
        answers(job(shipped.folder(), CACHE), [])


def test_transformers_and_our_network_answer_alike(tmp_path: Path, readings: list[QuestionRows]) -> None:
    folder = tiny.checkpoint(tmp_path / "t")
    ours = answers(job(folder, TORCH), readings)
    assert_same(answers(job(folder, TRANSFORMERS), readings), ours)
    assert_same(answers(job(folder, TRANSFORMERS, padded=True), readings), ours)


def test_bfloat16_answers_nearly_alike(tmp_path: Path, readings: list[QuestionRows]) -> None:
    folder = tiny.checkpoint(tmp_path / "t")
    exact, rough = (answers(job(folder, TRANSFORMERS, bf16=bf16), readings) for bf16 in (False, True))
    gaps = [abs(a.span_logit - b.span_logit) for a, b in zip(exact, rough, strict=True)]
    assert max(gaps) < 0.5
    assert any(gap > 0 for gap in gaps)
