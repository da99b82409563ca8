"""Stores a reader of your own, or any other model, on every shard, under its name."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from shardqa import keys
from shardqa.engine import Engine
from shardqa.errors import BadData
from shardqa.loader import dense, models, preparation
from shardqa.loader.models import Shard, ShardModel
from shardqa.loader.preparation import Prepared
from shardqa.models import shipped
from shardqa.models.check_reader import check_reader
from shardqa.models.reader import MAX_ROW_TOKENS
from shardqa.models.tokenizer import TOKENIZER_FILE

METADATA_PROPS = 14  # field of an ONNX file: what it says of itself, name and text
NAME_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # a part of Redis keys


async def push(engine: Engine, folder: Path, name: str, replace: bool = False) -> Prepared:
    """Registers the functions where they are missing and stores the reader under `name` on every master.

    Answers are cached under the reader's name: those of another reader of this name would be given on for up to an
    hour, so one that is there is replaced only with `replace`. Raises BadModel for a folder that is no reader or has
    another tokenizer than the shards, BadData for a name that is taken; and ClusterUnavailable, AnswerTimeout,
    ShardFailed.
    """
    check_reader(folder, MAX_ROW_TOKENS)
    dense.check_tokenizer(folder, shipped.folder())
    return await push_file(engine, ShardModel.reader(name, folder), replace)


async def push_pair(engine: Engine, folder: Path, encoder: Path) -> Prepared:
    """Stores a reader and an encoder of many languages on every master, in place of others: `Languages` chooses them.

    Raises BadModel for folders that are none, or differ in their tokenizers; and as `push`.
    """
    check_reader(folder, MAX_ROW_TOKENS)
    dense.check_encoder(encoder, folder)
    note = _field(1, TOKENIZER_FILE.encode()) + _field(2, (folder / TOKENIZER_FILE).read_bytes())
    reader = replace(ShardModel.reader(folder.name, folder), name=keys.MANY_READER, end=_field(METADATA_PROPS, note))
    registration = await preparation.register(engine)
    beside = replace(ShardModel.encoder(encoder.name, encoder), name=keys.MANY_ENCODER)
    new = await models.store(engine, registration.shards, beside)
    return Prepared(reader, registration.new, await models.store(engine, registration.shards, reader), new)


def _field(number: int, content: bytes) -> bytes:
    """Returns a field of Protobuf, of a number below 16."""
    *lower, highest = (len(content) >> bits & 0x7F for bits in range(0, 35, 7))
    return bytes([number << 3 | 2, *(bits | 0x80 for bits in lower), highest]) + content


async def push_file(engine: Engine, model: ShardModel, replace: bool = False) -> Prepared:
    """Stores any model on every master; shards copy it from each other later (shard/model_sync.py).

    Raises BadData for a name that is taken; and ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    registration = await preparation.register(engine)
    if not replace:
        await _check_free(engine, registration.shards, model)
    return Prepared(model, registration.new, await models.store(engine, registration.shards, model))


async def drop(engine: Engine, name: str) -> list[str]:
    """Removes a model from every master; returns those that had it. Raises as push_file, and BadData for one in use."""
    if name in (shipped.NAME, engine.settings.model, keys.ENCODER):
        raise BadData(f"the shards answer with {name}; give the name of a file that was pushed or of a former reader")
    registration = await preparation.register(engine)
    return await models.drop(engine, registration.shards, name)


def check_name(name: str, option: str) -> None:
    """Raise BadData, which names the option to give another by, unless a model other than the shipped may have it."""
    if not NAME_FORM.fullmatch(name):
        raise BadData(f"{name!r} is no name: letters, digits, '.', '_' and '-', at most 64, are; give one by {option}")
    if name == shipped.NAME:
        raise BadData(f"{name} is the shipped reader's name; choose another {option}")


async def _check_free(engine: Engine, shards: Sequence[Shard], reader: ShardModel) -> None:
    labels = (models.label_of(engine, node, keys.model(reader.name, tag)) for node, tag in shards)
    for (node, _), label in zip(shards, await asyncio.gather(*labels), strict=True):
        if label not in (None, reader.label):
            raise BadData(
                f"{node.name} has another model named {reader.name} ({label}), which others may use; "
                "choose another name, or --replace it"
            )
