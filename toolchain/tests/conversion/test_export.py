"""Exports: what is written, that it appears whole or not at all, and what is said when it can't be."""

import errno
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.reader import SPANS
from shardqa_toolchain.cards import Card, CardStep, address
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.export import export, write_torchscript
from shardqa_toolchain.conversion.networks import OnnxNetwork
from shardqa_toolchain.conversion.verify import FLOAT
from shardqa_toolchain.folders import written_atomically
from toolchain.tests.tiny_models import VOCABULARY, small_tokenizer, tiny_batch, tiny_weights, write_tiny


@pytest.fixture(scope="module")
def exported(reader: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "reader-onnx"
    export(reader, out)
    return out


def test_an_onnx_folder_holds_all_that_a_reader_needs(exported: Path) -> None:
    names = {path.name for path in exported.iterdir()}
    assert names == {"model.onnx", "tokenizer.json", "config.json", "checksums.json", "card.json"}
    assert shipped.checked_folder(exported) == exported


def test_the_card_tells_step_source_verdict_and_size(reader: Path, exported: Path) -> None:
    card = Card.load(exported)
    assert (card.name, card.sizes[0].what) == ("reader-onnx", "model.onnx")
    assert card.steps[-1].settings == {"source": address(reader), "form": "onnx", "opset": 17}
    assert (card.steps[-1].verdict or {})["passed"] is True


def test_the_same_checkpoint_gives_the_same_file(reader: Path, exported: Path, tmp_path: Path) -> None:
    export(reader, tmp_path / "again")
    assert (tmp_path / "again" / "model.onnx").read_bytes() == (exported / "model.onnx").read_bytes()


def test_torchscript_gives_what_onnx_gives(reader: Path, exported: Path, tmp_path: Path) -> None:
    write_torchscript(reader, tmp_path / "model.pt")
    batch = tiny_batch(tokens=19, real=11)
    network = torch.jit.load(str(tmp_path / "model.pt"))  # type: ignore[no-untyped-call]
    start, end = network(*(torch.from_numpy(value) for value in batch.feeds().values()))
    wanted = OnnxNetwork(exported / "model.onnx").outputs(batch)
    real = batch.attention_mask == 1
    for name, logits in zip(SPANS, (start, end), strict=True):
        np.testing.assert_allclose(logits.numpy()[real], wanted[name][real], atol=1e-4)


def tokenizer_of_other_specials() -> str:
    tokenizer = small_tokenizer()
    words = tokenizer["model"]["vocab"]
    words["[CLS]"], words["[SEP]"] = words["[SEP]"], words["[CLS]"]
    return json.dumps({**tokenizer, "added_tokens": []})


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (None, r"tokenizer\.json can't be read"),
        ((shipped.folder() / "tokenizer.json").read_text(), f"has 30,522 words, the network's table {VOCABULARY:,}"),
        (tokenizer_of_other_specials(), r"\[CLS\] is 102, 101 is needed"),
    ],
    ids=["none", "too large", "other special tokens"],
)
def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path: Path, tokenizer: str | None, message: str) -> None:
    source = write_tiny(tmp_path / "reader", tokenizer=False)
    if tokenizer is not None:
        (source / "tokenizer.json").write_text(tokenizer)
    with pytest.raises(BadModel, match=message):
        export(source, tmp_path / "out")


def test_an_encoder_without_a_span_head_is_no_reader(tmp_path: Path) -> None:
    weights = {name: value for name, value in tiny_weights().items() if "qa_outputs" not in name}
    with pytest.raises(BadModel, match="no span head"):
        export(write_tiny(tmp_path / "encoder", weights), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_not_overwritten(reader: Path, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(BadData, match="is there already; name a new folder"):
        export(reader, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def spoilt(folder: Path) -> None:
    """Writes a reader that is not the source's."""
    write_tiny(folder, tiny_weights(seed=7))


def test_a_result_that_answers_otherwise_is_thrown_away_or_kept_with_its_verdict(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"does not answer as .* does: a logit of the network differs by"):
        convert(reader, tmp_path / "out", CardStep("export"), spoilt, FLOAT, Check(limit=4))
    assert not any(tmp_path.iterdir())
    verdict = convert(reader, tmp_path / "out", CardStep("export"), spoilt, FLOAT, Check(limit=4, keep_failing=True))
    assert not verdict.passed
    assert (Card.load(tmp_path / "out").steps[-1].verdict or {})["passed"] is False


@pytest.fixture
def small_files() -> Iterator[None]:
    """Lets no file grow past 100 KB."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.usefixtures("small_files")
def test_a_file_that_can_not_be_written_whole_leaves_nothing(reader: Path, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"can't be written: {os.strerror(errno.EFBIG)}; free some space"):
        export(reader, tmp_path / "out")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (BadModel("half"), BadModel, "half"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), SetupError, "can't be written: No space left"),
        (PermissionError(errno.EACCES, "no"), PermissionError, "no"),
    ],
)
def test_a_fault_while_writing_leaves_nothing(
    tmp_path: Path, fault: Exception, kind: type[Exception], message: str
) -> None:
    def write_half() -> None:
        with written_atomically(tmp_path / "out") as folder:
            (folder / "model.onnx").write_text("half")
            raise fault

    with pytest.raises(kind, match=message):
        write_half()
    assert not any(tmp_path.iterdir())
