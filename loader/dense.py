"""An encoder on every shard, and which corpora it is for: passages then get vectors beside their words."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import BadModel
from shardqa.loader import models, preparation
from shardqa.loader.models import ShardModel
from shardqa.models import embedding, shipped
from shardqa.models.session import open_session
from shardqa.models.tokenizer import TOKENIZER_FILE

CONFIG_FILE = "config.json"


@dataclass(frozen=True, slots=True)
class Pushed:
    label: str
    stored: list[str]  # masters that lacked it


async def push(engine: Engine, folder: Path) -> Pushed:
    """Stores a folder's encoder on every master in place of another, whose vectors are no longer compared:
    all passages get new ones.

    Raises BadModel for a folder that is no encoder; ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    check_encoder(folder, shipped.folder())
    encoder = ShardModel.encoder(folder.name, folder)
    registration = await preparation.register(engine)
    await engine.shards.by_key(keys.NO_ENCODER, "UNLINK")
    return Pushed(encoder.label, await models.store(engine, registration.shards, encoder))


def check_encoder(folder: Path, reader: Path) -> None:
    """Raise BadModel unless the folder is a whole encoder that runs here, with its reader's tokenizer."""
    shipped.checked_folder(folder)
    check_tokenizer(folder, reader)
    outputs = [(one.name, one.type, one.shape[-1]) for one in open_session(folder, 1).get_outputs()]
    right = [(name, f"tensor({kind})", embedding.WIDTH) for name, kind in embedding.OUTPUTS.items()]
    if outputs != right:
        raise BadModel(f"{folder} has the outputs {outputs}, {right} is needed; write it with 'shardqa-models encoder'")
    try:
        positions = json.loads((folder / CONFIG_FILE).read_bytes())["max_position_embeddings"]
    except (OSError, ValueError, LookupError) as error:
        raise BadModel(f"{folder / CONFIG_FILE} can't be read: {error}; write the encoder again") from None
    if not isinstance(positions, int) or positions < embedding.MAX_TOKENS:
        raise BadModel(f"{folder} takes {positions} tokens, texts have up to {embedding.MAX_TOKENS}; take another")


def check_tokenizer(folder: Path, reader: Path) -> None:
    """Raise BadModel unless the tokenizer is the reader's, which passages are cut with."""
    if _rules(folder) != _rules(reader):
        raise BadModel(
            f"{folder / TOKENIZER_FILE} differs from the one that the shards cut passages with ({reader.name}'s); "
            "train from a checkpoint with that tokenizer, package the model instead, or push a pair (--encoder)"
        )


def _rules(folder: Path) -> Any:
    """Returns the tokenizer's settings that decide how text is cut; truncation and padding do not."""
    settings = json.loads((folder / TOKENIZER_FILE).read_bytes())
    return {name: value for name, value in settings.items() if name not in ("truncation", "padding")}


async def remove(engine: Engine) -> list[str]:
    """Removes the encoder from every master, for good; returns those that had it. Vectors stay, unused."""
    shards = (await preparation.register(engine)).shards
    await engine.shards.by_key(keys.NO_ENCODER, "SET", "removed")
    unlinks = [engine.shards.on(node, "UNLINK", keys.model(keys.ENCODER, tag)) for node, tag in shards]
    counts = await asyncio.gather(*unlinks)
    return [str(node.name) for (node, _), count in zip(shards, counts, strict=True) if int(count)]
