"""The shipped reader's answers on a slice of SQuAD 1.1 dev, and the graph it is made from against transformers."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardqa.models import shipped
from shardqa.models.measure import measure

SHARED = Path(os.environ.get("SHARDQA_SHARED", Path(__file__).parents[3] / "shared"))
DEV = SHARED / "data" / "squad" / "dev-v1.1.json.gz"

QUESTIONS = 200
EXACT_FLOOR, F1_FLOOR = 72.0, 81.0
"""The slice scored 74.0 and 82.7 when the reader was made (float32: see its card); the rest is for other processors."""

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "layer_norm_eps": 1e-12}


@pytest.mark.skipif(not DEV.exists(), reason=f"needs {DEV.name} of the shared data (SHARDQA_SHARED names its folder)")
def test_the_shipped_reader_answers_a_slice_of_squad() -> None:
    scores = measure(shipped.folder(), DEV, limit=QUESTIONS, threads=2)
    assert scores.questions == QUESTIONS
    assert scores.exact_match >= EXACT_FLOOR
    assert scores.f1 >= F1_FLOOR


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A small random BERT as transformers saves it, and the same in memory."""
    torch = pytest.importorskip("torch", reason="needs torch (pip install 'shardqa[models]')")
    transformers = pytest.importorskip("transformers", reason="needs transformers (pip install 'shardqa[models]')")
    pytest.importorskip("onnx", reason="needs onnx (pip install 'shardqa[models]')")
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=64, intermediate_size=128, initializer_range=0.3, **SIZES
    )
    bert = transformers.BertForQuestionAnswering(config).eval()
    folder = tmp_path_factory.mktemp("checkpoint")
    bert.save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((shipped.folder() / "tokenizer.json").read_bytes())
    return folder, bert


def feeds() -> dict[str, Any]:
    """Two rows, the second padded."""
    dice = np.random.default_rng(1)
    mask = np.ones((2, 24), dtype=np.int64)
    mask[1, 17:] = 0
    types = np.zeros((2, 24), dtype=np.int64)
    types[:, 9:] = 1
    return {
        "input_ids": dice.integers(1, 200, (2, 24)) * mask,
        "attention_mask": mask,
        "token_type_ids": types,
    }


def run(folder: Path, inputs: dict[str, Any]) -> list[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    return list(session.run(["start_logits", "end_logits"], inputs))


def truth(bert: Any, inputs: dict[str, Any]) -> list[Any]:
    import torch

    with torch.no_grad():
        found = bert(**{name: torch.tensor(value) for name, value in inputs.items()})
    return [found.start_logits.numpy(), found.end_logits.numpy()]


def test_the_exported_graph_computes_what_transformers_computes(checkpoint: tuple[Path, Any], tmp_path: Path) -> None:
    from shardqa.models.conversion.export import export

    export(checkpoint[0], tmp_path)
    inputs = feeds()
    real = inputs["attention_mask"] == 1
    for found, wanted in zip(run(tmp_path, inputs), truth(checkpoint[1], inputs), strict=True):
        np.testing.assert_allclose(found[real], wanted[real], atol=1e-3)


def test_the_quantised_graph_stays_near_the_exact_one(checkpoint: tuple[Path, Any], tmp_path: Path) -> None:
    from shardqa.models.conversion.quantise import quantise

    quantise(checkpoint[0], tmp_path)
    inputs = feeds()
    real = inputs["attention_mask"] == 1
    for found, wanted in zip(run(tmp_path, inputs), truth(checkpoint[1], inputs), strict=True):
        assert np.corrcoef(found[real], wanted[real])[0, 1] > 0.99
