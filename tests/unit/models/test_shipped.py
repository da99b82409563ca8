"""The reader that comes with shardqa: whole, small enough, and independent of what it is batched with."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from shardqa.errors import BadModel
from shardqa.models import shipped
from shardqa.models.reader import Batch, Row, batches, best_spans, join
from shardqa.models.session import MODEL_FILE, ReaderSession
from shardqa.models.tokenizer import Tokenizer

PASSAGE = "The mill at Penhale was built in 1742 by Jonas Fairlie, a cooper, and burned down twice."
MOST_BYTES = 25_000_000


@pytest.fixture(scope="module")
def session() -> ReaderSession:
    return ReaderSession(shipped.folder())


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(shipped.folder())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(shipped.folder(), tmp_path / "reader"))


def alone(row: Row) -> Batch:
    return batches([row])[0]


def test_the_shipped_reader_is_what_its_checksums_say() -> None:
    assert shipped.checked_folder() == shipped.folder()


def test_the_shipped_readers_name_tells_its_network_in_keys_and_card() -> None:
    """Answers are kept under the name: those of another network must have another."""
    assert f"{shipped.FOLDER}-{shipped.sha256(shipped.folder() / 'model.onnx')[:8]}" == shipped.NAME
    assert json.loads((shipped.folder() / shipped.CARD_FILE).read_text())["name"] == shipped.NAME


def test_the_shipped_reader_stays_within_25_mb() -> None:
    assert sum(path.stat().st_size for path in shipped.folder().iterdir()) <= MOST_BYTES


def test_a_file_cut_short_is_named(copy: Path) -> None:
    model = copy / MODEL_FILE
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(BadModel, match=r"model\.onnx has SHA-256"):
        shipped.checked_folder(copy)


def test_a_missing_file_is_named(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(BadModel, match=r"tokenizer\.json can't be read"):
        shipped.checked_folder(copy)


def test_a_folder_without_checksums_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"checksums\.json can't be read"):
        shipped.checked_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not ONNX at all", b"\x08\x08\x12\x05"])
def test_a_file_that_is_no_model_is_a_bad_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MODEL_FILE).write_bytes(content)
    with pytest.raises(BadModel, match="can't be loaded"):
        ReaderSession(tmp_path)


def test_a_model_cut_short_is_a_bad_model(copy: Path) -> None:
    model = copy / MODEL_FILE
    model.write_bytes(model.read_bytes()[:1_000_000])
    with pytest.raises(BadModel, match="can't be loaded"):
        ReaderSession(copy)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("who built the mill", "Jonas Fairlie"),
        ("When was the mill built?", "1742"),
        ("What was Jonas Fairlie?", "cooper"),
    ],
)
def test_the_reader_points_at_the_words_that_answer(
    session: ReaderSession, tokenizer: Tokenizer, question: str, answer: str
) -> None:
    passage = tokenizer.passage(PASSAGE)
    row = join(tokenizer.question(question), passage.ids)
    ((start, end),) = session.read([row])
    span = best_spans(start, end, row.passage, n_best=1)[0]
    found = PASSAGE[passage.offsets[span.start_token, 0] : passage.offsets[span.end_token, 1]]
    assert answer in found
    assert len(found) < len(answer) + 4


def test_a_rows_logits_do_not_depend_on_its_batch(session: ReaderSession, tokenizer: Tokenizer) -> None:
    questions = ["Who built the mill?", "How often did it burn?", "Where was the mill that a cooper once built?"]
    rows = [join(tokenizer.question(question), tokenizer.passage(PASSAGE).ids) for question in questions]
    together = batches(rows, bucket_tokens=512)[0]
    starts, ends = session.logits(together)
    for line, number in enumerate(together.rows):
        length = len(rows[number])
        start, end = session.logits(alone(rows[number]))
        np.testing.assert_allclose(starts[line, :length], start[0], atol=1e-3)
        np.testing.assert_allclose(ends[line, :length], end[0], atol=1e-3)


def test_rows_come_back_in_the_order_given(session: ReaderSession, tokenizer: Tokenizer) -> None:
    passage = tokenizer.passage(PASSAGE).ids
    rows = [join(tokenizer.question("Who built the mill?"), np.tile(passage, times)) for times in (3, 1, 2)]
    assert [len(start) for start, _ in session.read(rows)] == [len(row) for row in rows]


def test_a_row_of_512_tokens_is_read(session: ReaderSession) -> None:
    row = join(np.full(10, 2040, dtype=np.int32), np.full(499, 2003, dtype=np.int32))
    ((start, end),) = session.read([row])
    assert len(start) == len(end) == 512
    assert np.isfinite(start).all()
