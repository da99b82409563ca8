"""`shardqa config show` and `init`: each setting's value, and where it comes from; a file of them to begin with."""

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from shardqa import address
from shardqa.cli.connection import DEFAULT_DATA, of_other_clients
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import print_json, print_table, report
from shardqa.config import PREFIX, Settings

HIDDEN = "********"
CONFIG = "SHARDQA_CONFIG"
TOKEN = "SHARDQA_PAPERLESS_TOKEN"
BESIDES = {  # what is no setting and has its place in the environment alone
    CONFIG: "",
    "SHARDQA_DATA": str(DEFAULT_DATA),
    "SHARDQA_SHARE_MODELS": "",
    "SHARDQA_REDIS_SERVER": "",
    "WEB_CONCURRENCY": "1",
    TOKEN: "",
}

app = typer.Typer(help="What settings hold.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class ShownSetting:
    name: str
    value: Any
    origin: str  # default | environment NAME | file PATH | option --NAME | redis://… | the cluster that runs here


@app.command("show")
@on_cluster
def show(target: Target, context: typer.Context, as_json: JsonOption = False, corpus: CorpusOption = None) -> None:
    """Print every setting with its value and where that comes from; secrets are hidden.

    Example: shardqa config show --redis 10.0.0.5:7000
    """
    settings = target.settings(corpus=corpus)
    names = ("redis", "user", "password", "corpus")
    sources = {name: context.get_parameter_source(name) for name in names}
    options = {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}
    parts = address.parse(target.redis or str(_file().get("redis", "")))
    of_url = {name for name in ("user", "password") if getattr(parts, name) is not None}  # by redis:// and rediss://
    rows = [_setting(settings, name, options, of_url) for name in Settings.model_fields]
    rows += [_besides(name) for name in BESIDES]
    if as_json:
        print_json([asdict(one) for one in rows])
    else:
        print_table(["name", "value", "from"], [[one.name, one.value, one.origin] for one in rows])


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="File to write; it must not be there.")] = Path("shardqa.toml"),
    as_json: JsonOption = False,
) -> None:
    """Write a file of all settings, each with what it means and its default, as a comment to be taken away.

    Example: shardqa config init shardqa.toml
    """
    with file.open("x", encoding="utf-8") as out:
        out.write(f"# Settings of shardqa, read where {CONFIG} names this file.\n")
        for name, field in Settings.model_fields.items():
            value = json.dumps("" if field.default is None else field.default)
            out.write(f"\n# {field.description or name.replace('_', ' ')}\n# {name} = {value}\n")
    report(as_json, {"file": str(file)}, f"wrote {file}; {CONFIG}={file} makes it count")


def _setting(settings: Settings, name: str, options: set[str], parts: set[str]) -> ShownSetting:
    value = getattr(settings, name)
    if isinstance(value, SecretStr):
        value = HIDDEN
    elif isinstance(value, Path):
        value = str(value)
    origin = _origin(name, options)
    if origin is not None:
        return ShownSetting(name, value, origin)
    if name in parts:
        return ShownSetting(name, value, f"the address, {_origin('redis', options)}")
    if name in (others := of_other_clients(set(Settings.model_fields) - {name})):
        return ShownSetting(name, value, others[name][1])
    return ShownSetting(name, value, "default")


def _origin(name: str, options: set[str]) -> str | None:
    """Names the place that gives a setting: an option, else a variable, else the file; None for the default."""
    variable = f"{PREFIX}{name.upper()}"
    if name in options:
        return f"option --{name}"
    if any(own.upper() == variable for own in os.environ):
        return f"environment {variable}"
    if name in _file():
        return f"file {os.environ[CONFIG]}"
    return None


def _file() -> dict[str, Any]:
    path = os.environ.get(CONFIG)
    return tomllib.loads(Path(path).read_text()) if path else {}


def _besides(name: str) -> ShownSetting:
    if name in os.environ:
        value = HIDDEN if name == TOKEN else os.environ[name]
        return ShownSetting(name, value, f"environment {name}")
    return ShownSetting(name, BESIDES[name] or None, "default")
