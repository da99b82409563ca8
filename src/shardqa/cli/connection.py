"""The way to a cluster: settings, an engine for the length of one command, clients of single nodes."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr, ValidationError

from shardqa.cli.faults import WrongSetting
from shardqa.cli.output import say
from shardqa.cluster import state
from shardqa.config import Settings, unknown_names
from shardqa.errors import ShardqaError

if TYPE_CHECKING:  # imported where they are used: not every command needs them
    from redis import Redis

    from shardqa.engine import Engine
    from shardqa.filters import DocumentFilter

Result = TypeVar("Result")
SEED_SECONDS = 2.0  # for one node of several to answer, before the next is tried
DEFAULT_DATA = Path(".data")  # in the current folder, so that two checkouts do not share a cluster by accident


class _CommandSettings(Settings):
    strict = False


def settings_of(redis: str | None, user: str | None, password: str | None, **others: Any) -> Settings:
    """Reads the settings: flags before the environment before the file; `redis` is by default the cluster of ./.data.

    Raises WrongSetting for values that are not what they should be.
    """
    for text in unknown_names(os.environ):
        say(f"warning: {text}")
    flags = {"redis": redis, "user": user, "password": SecretStr(password) if password else None, **others}
    values = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = _CommandSettings(**values)
        others = {name: value for name, (value, _) in of_other_clients(settings.model_fields_set).items()}
        if others:
            settings = _CommandSettings(**{**values, **others})
        assert settings.addresses, "what is no address raises"
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        if not name:  # of several together, among them a password
            raise WrongSetting(first["msg"].removeprefix("Value error, ")) from None
        remedy = "see 'shardqa COMMAND --help'" if name in values else f"correct SHARDQA_{name.upper()} or the file"
        raise WrongSetting(f"{name}={first.get('input')!r}: {first['msg']}; {remedy}") from None
    except (ValueError, FileNotFoundError) as error:
        raise WrongSetting(str(error)) from None
    return settings


def filter_of(text: str | None, sources: list[str] | None) -> "DocumentFilter | None":
    """Parses the JSON of a filter, and adds what sources begin with. Raises BadFilter."""
    from shardqa import filters

    filter_ = filters.of_text(text)
    if not sources:
        return filter_
    return filters.DocumentFilter(source=sources, all=[] if filter_ is None else [filter_])


def of_other_clients(known: set[str]) -> dict[str, tuple[Any, str]]:
    """Returns value and origin of settings that are not `known`: the cluster of ./.data that runs, else that of
    REDIS_URL; the password of redis-cli."""
    found = dict[str, tuple[Any, str]]()
    if "redis" not in known and (seed := _local_seed()):
        found["redis"] = seed, f"the cluster that runs in {os.environ.get('SHARDQA_DATA') or DEFAULT_DATA}"
    elif "redis" not in known and (url := os.environ.get("REDIS_URL")):
        found["redis"] = url, "environment REDIS_URL"
    if "password" not in known and (password := os.environ.get("REDISCLI_AUTH")):
        found["password"] = SecretStr(password), "environment REDISCLI_AUTH"
    return found


def _local_seed() -> str | None:
    try:
        local = state.load(Path(os.environ.get("SHARDQA_DATA") or DEFAULT_DATA).resolve())
    except ShardqaError:
        return None  # a foreign folder in this place says nothing about which cluster is meant
    return f"127.0.0.1:{local.port}" if local is not None and any(n.running() for n in local.nodes) else None


def with_engine(settings: Settings, work: Callable[["Engine"], Awaitable[Result]]) -> Result:
    """Runs `work` with a connected engine, and closes it. Raises ShardqaError."""
    import uvloop

    from shardqa.engine import Engine

    async def run() -> Result:
        engine = await Engine.connect(settings)
        try:
            return await work(engine)
        finally:
            await engine.close()

    return uvloop.run(run())


def seed_of(settings: Settings) -> str:
    """Returns HOST:PORT of the settings' first node that answers, else of the first."""
    from redis.exceptions import ConnectionError, RedisError, TimeoutError

    for host, port in settings.addresses:
        try:
            with node_client(settings, host, port, SEED_SECONDS) as client:
                client.ping()
        except (ConnectionError, TimeoutError):
            continue
        except RedisError:
            pass  # it refuses, as one who lives does
        return f"{host}:{port}"
    return "{}:{}".format(*settings.addresses[0])


def node_client(settings: Settings, host: str, port: int, timeout: float = 5.0) -> "Redis":
    """Returns a plain client of one node, as the same user."""
    from shardqa.cluster import node as talk

    return talk.client(host, port, *settings.credentials, timeout, settings.tls_options)
