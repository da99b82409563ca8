"""`shardqa.pipeline` against the pipeline it stands in for: transformers 4.57's own, on the same weights.

transformers 5 is ours and has none, so that one runs in an environment of its own (pipeline_oracle.py).
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import shardqa
from shardqa.models import shipped
from shardqa.models.pipeline import QuestionAnswering
from tests.environments import interpreter_of

HERE = Path(__file__).parent
SEEDS = HERE.parents[1] / "seeds"
PACKAGES = ["transformers==4.57.6"]
SAME = 0.995  # of the spans, at least
QUESTIONS = 60
MOST = 600  # characters of most contexts: torch takes its time
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python() -> Path:
    return interpreter_of("transformers-4", PACKAGES)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped reader's weights, for torch."""
    pytest.importorskip("torch", reason="the oracle runs on torch, and so does the export of its checkpoint")
    from shardqa_toolchain.conversion.checked import Check
    from shardqa_toolchain.conversion.dequantize import dequantize

    folder = tmp_path_factory.mktemp("checkpoint") / "reader"
    dequantize(shipped.folder(), folder, Check(limit=20))
    return folder


@pytest.fixture(scope="module")
def reader(checkpoint: Path) -> QuestionAnswering:
    """The shipped reader's weights, for onnxruntime."""
    from shardqa_toolchain.conversion.checked import Check
    from shardqa_toolchain.conversion.export import export

    folder = checkpoint.parent / "float32"
    export(checkpoint, folder, check=Check(limit=20))
    return shardqa.pipeline("question-answering", folder)


def questions() -> list[tuple[str, str]]:
    """Questions of seeds/ with their documents, those that the documents don't answer among them."""
    lines = [json.loads(line) for line in (SEEDS / "questions.jsonl").read_text().splitlines()]
    texts = {path.name: path.read_text() for path in sorted((SEEDS / "documents").iterdir())}
    some = lines[:: len(lines) // QUESTIONS]
    every = list(texts.values())
    return [
        (one["question"], texts.get(one.get("document") or "", every[n % len(every)])) for n, one in enumerate(some)
    ]


def calls() -> list[dict[str, Any]]:
    """One at a time, many at once, every parameter, contexts of many windows, marks and scripts beyond Latin."""
    pairs = questions()
    long = "\n\n".join(dict.fromkeys(context for _, context in pairs[:3]))
    odd = "Zoë’s café «L'Étoile» opened in Gdańsk in 1998, e\u0301tage 3; 東京タワー is 332.9 m tall. It costs $4.5m."
    found: list[dict[str, Any]] = [{"question": question, "context": context} for question, context in pairs]
    found += [{"question": [q for q, _ in pairs[:3]], "context": long, "top_k": 3}]
    found += [{"question": [q for q, _ in pairs[:4]], "context": [c for _, c in pairs[:4]]}]
    found += [{"question": q, "context": long, "max_seq_len": 128, "doc_stride": 32} for q, _ in pairs[:2]]
    found += [{"question": q, "context": c, "handle_impossible_answer": True} for q, c in pairs[-12:]]
    found += [{"question": q, "context": c, "max_answer_len": 3, "top_k": 4} for q, c in pairs[12:16]]
    found += [{"question": q, "context": c, "align_to_words": False, "top_k": 5} for q, c in pairs[16:20]]
    others = ["When did the café open?", "How tall is the tower?", "What does it cost?", "Which floor is it on"]
    found += [{"question": question, "context": odd, "top_k": 2} for question in others]
    return found


def flat(result: Any) -> list[dict[str, Any]]:
    return [result] if isinstance(result, dict) else [one for part in result for one in flat(part)]


def shape(result: Any) -> Any:
    """A result without its values."""
    if isinstance(result, dict):
        return {name: type(value).__name__ for name, value in result.items()}
    return [shape(part) for part in result]


@pytest.mark.timeout(600)  # made once, the environment is downloaded
def test_it_gives_the_spans_that_the_pipeline_of_transformers_gives(
    python: Path, checkpoint: Path, reader: QuestionAnswering, tmp_path: Path
) -> None:
    arguments = calls()
    (tmp_path / "calls.json").write_text(json.dumps(arguments))
    words = [str(python), str(HERE / "pipeline_oracle.py"), str(checkpoint)]
    words += [str(tmp_path / name) for name in ("calls.json", "out.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = json.loads((tmp_path / "out.json").read_text())["results"]
    ours = [reader(**call) for call in arguments]
    assert [shape(one) for one in ours] == [shape(one) for one in theirs]
    pairs = list(zip(flat(ours), flat(theirs), strict=True))
    wrong = [(a, b) for a, b in pairs if (a["start"], a["end"], a["answer"]) != (b["start"], b["end"], b["answer"])]
    assert len(pairs) > 110
    assert len(wrong) <= (1 - SAME) * len(pairs), wrong
    # theirs adds up the scores of a span that words share, past 1
    far = [(a, b) for a, b in pairs if (a, b) not in wrong and abs(a["score"] - min(1.0, b["score"])) > 1e-3]
    assert not far
