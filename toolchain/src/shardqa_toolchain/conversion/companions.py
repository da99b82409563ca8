"""The files that go with a network in a model's folder."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from shardqa.errors import BadModel
from shardqa.models.reader import CLS, PAD, SEP
from shardqa.models.scoring import SCORING_FILE
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE


def write_companions(source: Path, config: Mapping[str, Any], vocabulary: int, folder: Path) -> None:
    """Write what goes with a network: tokenizer, configuration and, where the source has it, the scoring.

    ``vocabulary`` is the number of rows of the word table. Raises BadModel when the source's tokenizer is missing or
    belongs to another network.
    """
    check_tokenizer(source / TOKENIZER_FILE, vocabulary)
    shutil.copyfile(source / TOKENIZER_FILE, folder / TOKENIZER_FILE)
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if (source / SCORING_FILE).exists():
        shutil.copyfile(source / SCORING_FILE, folder / SCORING_FILE)


def check_tokenizer(path: Path, vocabulary: int) -> None:
    """Raise BadModel unless the tokenizer's ids fit the word table, and [PAD], [CLS], [SEP] are where readers' are."""
    try:
        pieces = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    # The Rust side raises plain Exception for whatever it can't parse.
    except Exception as error:  # noqa: BLE001
        raise BadModel(f"{path} can't be read: {error}; save the tokenizer beside the weights") from None
    if pieces.get_vocab_size() > vocabulary:
        raise BadModel(
            f"{path} has {pieces.get_vocab_size():,} words, the network's table {vocabulary:,}; "
            "take the tokenizer that the network was trained with"
        )
    for word, standard in (("[PAD]", PAD), ("[CLS]", CLS), ("[SEP]", SEP)):
        if pieces.token_to_id(word) != standard:
            id = pieces.token_to_id(word)
            raise BadModel(f"{path}: {word} is {id}, {standard} is needed; readers use BERT's published vocabularies")
