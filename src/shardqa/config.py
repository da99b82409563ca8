"""Settings from, in rising order: defaults, the file named by SHARDQA_CONFIG (TOML), environment (SHARDQA_*), flags."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from shardqa import address
from shardqa.answer_lines import AnswerWhen
from shardqa.checks import MAX_K, MAX_N_BEST
from shardqa.keys import SHIPPED_READER

OPENINGS = ("openai", "feedback", "questions")  # routes of the API that a server has where it is told so

PREFIX = "SHARDQA_"
NOT_SET = "CONFIG DATA PAPERLESS_TOKEN REDIS_SERVER SHARED SHARE_MODELS ACTIVITY_FD PRELOAD MODULE"
OTHERS = frozenset(PREFIX + name for name in re.findall(r"\S+", NOT_SET))
"""Variables that are no settings: of the command line, of tests, of the worker."""


def unknown_names(environment: Iterable[str]) -> list[str]:
    """Says of each variable SHARDQA_… that means nothing here what may be meant."""
    names = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OTHERS
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in names)
    return [
        f"the variable {name} in the environment is no setting; {_hint(name, names, 'unset it')}" for name in unknown
    ]


def check_names(environment: Iterable[str]) -> None:
    """Raises ValueError for the first of `unknown_names`: a misspelt one would be passed over."""
    for text in unknown_names(environment):
        raise ValueError(text)


def _hint(name: str, names: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"did you mean {near[0]}?" if near else otherwise


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"redis={text!r} is not HOST:PORT, like 127.0.0.1:7000; several are separated by commas")
    return host.strip("[]"), int(port)


ORIGIN = re.compile(r"https?://[^/?#@\s*]+")


def _origins(text: str) -> list[str]:
    return [part.strip().lower().removesuffix("/") for part in text.split(",") if part.strip()]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="SHARDQA_", extra="forbid", hide_input_in_errors=True)

    strict: ClassVar[bool] = True  # a variable that means nothing stops servers; a command warns of it

    redis: str = Field("127.0.0.1:7000", description="HOST:PORT, redis:// or rediss:// of a node; several with commas")
    user: str = Field("default", description="ACL user; needs +get +shardqa.get and the RG.* and AI.* commands")
    password: SecretStr | None = None
    corpus: str = Field(
        "seeds", description="the corpus of requests that name none; unset, a question is for the only other one"
    )
    k: int = Field(5, ge=1, le=MAX_K, description="passages read per question")
    n_best: int = Field(3, ge=1, le=MAX_N_BEST, description="candidates returned")
    sure: float = Field(0.6, gt=0, le=1, description="score from which no other passage is read; 1 reads all k")
    model: str = Field(SHIPPED_READER, description="name of the reader that the shards run")
    answer_when: AnswerWhen = Field("balanced", description="how sure an answer must be: unsure, balanced or sure")
    cache_megabytes: int = Field(64, ge=0, description="memory for final answers in this process; 0 keeps none")
    keep_megabytes: int = Field(8, ge=0, description="largest file that is kept beside its text; 0 keeps none")
    timeout: float = Field(10.0, gt=0, description="seconds one question may take")
    concurrency: int = Field(64, ge=1, description="requests served at once by one API process; more get 429")
    log: Literal["text", "json"] = Field("text", description="how the API logs: lines for people, or JSON objects")
    http_host: str = "127.0.0.1"
    http_port: int = Field(8080, ge=1, le=65535)
    http_keys: Literal["others", "all", "none"] = Field(
        "others", description="who needs an API key: others than this machine, all, or none (a proxy sees to it)"
    )
    http_tls_cert: Path | None = Field(None, description="certificate of the API, for https")
    http_tls_key: Path | None = Field(None, description="its key")
    http_hosts: str = Field(
        "", description="names, with commas, it answers under besides localhost and addresses; * any"
    )

    http_origins: str = Field(
        "", description="origins, with commas, of other sites' pages that may use the API: https://app.example"
    )

    http_openings: str = Field("", description="with commas: openai, feedback, questions; further routes")

    _tls: dict[str, Any] = PrivateAttr(default_factory=dict)

    @field_validator("http_origins")
    @classmethod
    def check_origins(cls, text: str) -> str:
        for part in _origins(text):
            if not ORIGIN.fullmatch(part):
                raise ValueError(f"{part!r} is no origin; write it as https://app.example")
        return text

    @field_validator("http_openings")
    @classmethod
    def check_openings(cls, text: str) -> str:
        for name in filter(None, map(str.strip, text.split(","))):
            if name not in OPENINGS:
                raise ValueError(f"{name!r} is no opening; there are {', '.join(OPENINGS)}")
        return text

    @model_validator(mode="after")
    def take_address_apart(self) -> "Settings":
        """Addresses may carry a user, a password and TLS; a user and a password set by themselves go ahead."""
        names = set(self.model_fields_set)
        parts = address.parse(self.redis)
        self.redis, self._tls = parts.hosts, parts.tls
        if parts.user is not None and "user" not in names:
            self.user = parts.user
        if parts.password is not None and "password" not in names:
            self.password = SecretStr(parts.password)
        if "redis" not in names:
            self.model_fields_set.discard("redis")  # taken apart, and still nobody's choice
        return self

    @property
    def tls_options(self) -> dict[str, Any]:
        """Returns the options of redis-py's clients; none without TLS, which a rediss:// address asks for."""
        return self._tls

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Lists (host, port) of each node in `redis`; raises ValueError where one is not HOST:PORT."""
        return [_address(part.strip()) for part in self.redis.split(",") if part.strip()] or [_address("")]

    @property
    def hosts(self) -> list[str]:
        """The names in `http_hosts`."""
        return [name for part in self.http_hosts.split(",") if (name := part.strip())]

    @property
    def openings(self) -> list[str]:
        return [name for part in self.http_openings.split(",") if (name := part.strip())]

    @property
    def origins(self) -> list[str]:
        return _origins(self.http_origins)

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """Returns (user, password) to authenticate with; (None, None) for the default user without a password."""
        if self.password is None and self.user == "default":
            return None, None
        return self.user, self.password.get_secret_value() if self.password else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        if cls.strict:
            check_names(os.environ)
        path = os.environ.get("SHARDQA_CONFIG")
        if path is None:
            return init_settings, env_settings
        if not Path(path).is_file():
            raise FileNotFoundError(f"SHARDQA_CONFIG names {path!r}, which is not a file; unset it or write the file")
        file = TomlConfigSettingsSource(settings_cls, Path(path))
        for name in file.toml_data:
            if name not in cls.model_fields:
                raise ValueError(
                    f"{path} sets {name!r}, which is no setting; {_hint(name, cls.model_fields, 'delete it')}"
                )
        return init_settings, env_settings, file
