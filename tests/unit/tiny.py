"""Tiny random models and question sets, enough to walk every path of training and conversion in seconds."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from shardqa.models import shipped

HIDDEN, HEADS, WIDTH, POSITIONS, VOCABULARY = 32, 4, 48, 512, 30522


def checkpoint(folder: Path, layers: int = 2, seed: int = 0) -> Path:
    """Write a random BertForQuestionAnswering with the shipped reader's tokenizer, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["BertForQuestionAnswering"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": WIDTH,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": layers,
        "type_vocab_size": 2,
        "vocab_size": VOCABULARY,
    }
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights(layers, seed), folder / "model.safetensors", {"format": "pt"})
    shutil.copyfile(shipped.folder() / "tokenizer.json", folder / "tokenizer.json")
    return folder


def weights(layers: int, seed: int) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    random = np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return (random.standard_normal(shape) * 0.2).astype(np.float32)

    def norm(name: str) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
        return {f"{name}.LayerNorm.weight": 1 + matrix(HIDDEN), f"{name}.LayerNorm.bias": matrix(HIDDEN)}

    def dense(name: str, outputs: int, inputs: int) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
        return {f"{name}.weight": matrix(outputs, inputs), f"{name}.bias": matrix(outputs)}

    tables = "bert.embeddings."
    found = {
        tables + "word_embeddings.weight": matrix(VOCABULARY, HIDDEN),
        tables + "position_embeddings.weight": matrix(POSITIONS, HIDDEN),
        tables + "token_type_embeddings.weight": matrix(2, HIDDEN),
        **norm("bert.embeddings"),
        **dense("qa_outputs", 2, HIDDEN),
    }
    for number in range(layers):
        layer = f"bert.encoder.layer.{number}."
        for part in ("query", "key", "value"):
            found |= dense(f"{layer}attention.self.{part}", HIDDEN, HIDDEN)
        found |= dense(f"{layer}attention.output.dense", HIDDEN, HIDDEN)
        found |= norm(f"{layer}attention.output")
        found |= dense(f"{layer}intermediate.dense", WIDTH, HIDDEN)
        found |= dense(f"{layer}output.dense", HIDDEN, WIDTH)
        found |= norm(f"{layer}output")
    return found


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
