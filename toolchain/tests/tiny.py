"""Tiny random models and question sets, enough to walk every path of training and conversion in seconds."""

import json
import shutil
from pathlib import Path
from typing import Any

from shardqa.models import shipped
from toolchain.tests.tiny_models import Weights, evidence_heads, tiny_config, tiny_weights, write_tiny

HEADS, WIDTH = 4, 48
VOCABULARY, POSITIONS = 30522, 512  # the shipped reader's tokenizer's, and room for rows of any text

DEVIATION = 0.2  # of the weights: calmer than others, so that int8 keeps the best span of most rows


def checkpoint(folder: Path, layers: int = 2, seed: int = 0, evidence: bool = False) -> Path:
    """Write a random BertForQuestionAnswering with the shipped reader's tokenizer, and return its folder.

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
    """Write a SQuAD file of two paragraphs of one article: two answerable questions, one not, and what is given."""
    rivers = [
        asked("r1", "Which town does the Rhine flow through?", RIVERS, "Basel"),
        asked("r2", "What colour is the Rhine?", RIVERS, "green"),
        asked("r3", "Which bird nests on the Rhine?", RIVERS, None),
        *extra,
    ]
    lakes = [asked("l1", "Where does the green Rhine enter Lake Constance?", LAKES, "in the east")]
    paragraphs = [{"context": RIVERS, "qas": rivers}, {"context": LAKES, "qas": lakes}]
    path.write_text(json.dumps({"version": "2.0", "data": [{"title": "Rhine", "paragraphs": paragraphs}]}))
    return path


def asked(name: str, question: str, text: str, answer: str | None) -> dict[str, Any]:
    answers = [] if answer is None else [{"text": answer, "answer_start": text.index(answer)}]
    return {"id": name, "question": question, "answers": answers, "is_impossible": answer is None}
