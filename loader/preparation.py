"""Makes a cluster ready to answer: functions and shipped reader on every master."""

from dataclasses import dataclass

from shardqa.engine import Engine
from shardqa.loader import functions, models
from shardqa.loader.models import Model
from shardqa.models import shipped


@dataclass(frozen=True, slots=True)
class Prepared:
    reader: Model
    registered: list[str]  # masters that lacked the functions
    stored: list[str]  # masters that lacked the reader


async def prepare(engine: Engine, force: bool = False) -> Prepared:
    """Registers and stores what is missing (the functions anew everywhere with `force`).

    Raises BadModel when the shipped reader is not what its checksums say, before anything is sent; and
    ClusterUnavailable, AnswerTimeout, ShardFailed.
    """
    reader = Model.read(shipped.NAME, shipped.checked_folder())
    registered = await functions.register(engine, force)
    return Prepared(reader, registered, await models.store(engine, reader))
