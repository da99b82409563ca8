"""Tiny random models and question sets, enough to walk every path of training and conversion in seconds."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.cli import app
from toolchain.tests.tiny_models import Weights, evidence_heads, tiny_config, tiny_weights, write_tiny

HEADS, WIDTH = 4, 48
# The shipped reader's tokenizer's, and room for rows of any text.
VOCABULARY, POSITIONS = 30522, 512
DEVIATION = 0.2  # of the weights: calmer than others, so that int8 keeps the best span of most rows
TOKENIZER = Tokenizer.load(shipped.folder())


def command(*words: object) -> Result:
    """Runs `shardqa-models`; faults are raised."""
    return CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)


def checkpoint(folder: Path, layers: int = 2, seed: int = 0, evidence: bool = False) -> Path:
    """Writes a random BertForQuestionAnswering with the shipped reader's tokenizer, and returns its folder.

    ``evidence`` adds the heads of the outputs evidence and relevance.
    """
    sizes = ((HEADS, WIDTH),) * layers
    config = tiny_config(sizes, intermediate_size=WIDTH, vocab_size=VOCABULARY, max_position_embeddings=POSITIONS)
    tensors = weights(layers, seed) | (evidence_heads(seed, DEVIATION) if evidence else {})
    write_tiny(folder, tensors, config, tokenizer=False)
    shutil.copyfile(shipped.folder() / "tokenizer.json", folder / "tokenizer.json")
    return folder


def weights(layers: int, seed: int) -> Weights:
    return tiny_weights(((HEADS, WIDTH),) * layers, seed, VOCABULARY, POSITIONS, DEVIATION)


RIVERS = "The Rhine flows north through Basel. Its colour is green, and its mouth lies in the Netherlands."
LAKES = "Lake Constance is deep. The Rhine enters it in the east and leaves it near the town of Stein."


def question_set(path: Path, *extra: dict[str, Any]) -> Path:
    """Writes a SQuAD file of two paragraphs of one article: two answerable questions, one not, and ``extra``."""
    rivers = [
        question("r1", "Which town does the Rhine flow through?", RIVERS, "Basel"),
        question("r2", "What colour is the Rhine?", RIVERS, "green"),
        question("r3", "Which bird nests on the Rhine?", RIVERS, None),
        *extra,
    ]
    lakes = [question("l1", "Where does the green Rhine enter Lake Constance?", LAKES, "in the east")]
    return write_squad(path, {"Rhine": {RIVERS: rivers, LAKES: lakes}})


def one_question(path: Path, count: int = 1, answers: Sequence[str] = ("me",)) -> Path:
    """Writes a SQuAD file of a short paragraph and so many like questions, in words of the smallest vocabulary."""
    places = [{"text": answer, "answer_start": 0} for answer in answers]
    questions = [{"id": str(n), "question": f"who am i {n}", "answers": places} for n in range(count)]
    return write_squad(path, {"t": {"me and you and all of them " * 5: questions}})


def write_squad(path: Path, articles: dict[str, dict[str, list[dict[str, Any]]]]) -> Path:
    """Writes questions by title and paragraph."""
    data = [
        {"title": title, "paragraphs": [{"context": text, "qas": each} for text, each in paragraphs.items()]}
        for title, paragraphs in articles.items()
    ]
    path.write_text(json.dumps({"version": "2.0", "data": data}))
    return path


def question(name: str, text: str, passage: str, answer: str | None) -> dict[str, Any]:
    answers = [] if answer is None else [{"text": answer, "answer_start": passage.index(answer)}]
    return {"id": name, "question": text, "answers": answers, "is_impossible": answer is None}
