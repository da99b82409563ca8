"""Checks that a folder is a reader that can serve: files unchanged, and a network that runs here."""

import json
from pathlib import Path

from shardqa.errors import BadModel
from shardqa.models import reader, shipped
from shardqa.models.scoring import SCORING_FILE, Scoring
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer

READER_FILES = ("model.onnx", "tokenizer.json", "config.json", SCORING_FILE, "checksums.json")
"""A reader's files; its card goes along where it has one."""


def check_reader(folder: Path, row_tokens: int) -> None:
    """Raises BadModel unless the folder is a whole reader whose network runs here and takes rows of ``row_tokens``."""
    shipped.checked_folder(folder)
    for name in READER_FILES:
        if not (folder / name).is_file():
            raise BadModel(f"{folder} has no {name}; {_way_to(name)}")
    positions = _positions(folder / "config.json")
    if not isinstance(positions, int) or positions < row_tokens:
        raise BadModel(
            f"{folder} takes rows of {positions} tokens, passages are read in rows of up to {row_tokens}; "
            "choose a model with max_position_embeddings of that or more"
        )
    Scoring.load(folder)
    tokenizer = Tokenizer.load(folder)
    row = reader.join(tokenizer.question("Who?"), tokenizer.passage("Nobody.").ids)
    start, end = ReaderSession(folder, 1).read([row])[0]
    reader.best_spans(start, end, row.passage, n_best=1)


def _way_to(name: str) -> str:
    if name == SCORING_FILE:
        return "fit the scores of the folder that was quantized: shardqa-models candidates, then calibrate"
    return "name a reader's folder, as shardqa-models quantize writes it"


def _positions(path: Path) -> object:
    try:
        return json.loads(path.read_bytes()).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError) as error:
        raise BadModel(f"{path} can't be read: {error}; restore the reader's folder") from None
