"""Settings from, in rising order: defaults, the file named by SHARDQA_CONFIG (TOML), environment (SHARDQA_*), flags."""

import os
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

MAX_K = 100  # passages read per question; each costs one run of the reader
MAX_N_BEST = 20  # candidates a shard keeps in its answer
MAX_QUESTION = 2_000  # characters accepted before the reader's own bound of 64 word pieces is looked at
MAX_DOCUMENT = 5_000_000  # UTF-8 bytes of one text (War and Peace: 3.2 million); 4 s of a shard, within its deadline


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="SHARDQA_", extra="forbid")

    redis: str = Field("127.0.0.1:7000", description="HOST:PORT of any node of the cluster")
    user: str = Field("default", description="ACL user; needs +get +shardqa.get and the RG.* and AI.* commands")
    password: SecretStr | None = None
    corpus: str = Field("seeds", description="the corpus asked when a request names none")
    k: int = Field(5, ge=1, le=MAX_K, description="passages read per question")
    n_best: int = Field(3, ge=1, le=MAX_N_BEST, description="candidates returned")
    model: str = Field("reader-v1-int8", description="name of the reader that the shards run")
    answer_seconds: int = Field(3_600, ge=1, description="life of a final answer in Redis, seconds")
    cache_megabytes: int = Field(64, ge=0, description="memory for final answers in this process; 0 keeps none")
    timeout: float = Field(10.0, gt=0, description="seconds one question may take")
    concurrency: int = Field(64, ge=1, description="requests served at once by one API process; more get 429")
    http_host: str = "127.0.0.1"
    http_port: int = Field(8080, ge=1, le=65535)

    @property
    def address(self) -> tuple[str, int]:
        """(host, port) of `redis`; raises ValueError when it is not HOST:PORT."""
        host, _, port = self.redis.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"redis={self.redis!r} is not HOST:PORT, like 127.0.0.1:7000")
        return host.strip("[]"), int(port)

    @property
    def credentials(self) -> tuple[str | None, str | None]:
        """(user, password) to authenticate with; (None, None) for the default user without a password."""
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
        path = os.environ.get("SHARDQA_CONFIG")
        if path is None:
            return init_settings, env_settings
        if not Path(path).is_file():
            raise FileNotFoundError(f"SHARDQA_CONFIG names {path!r}, which is not a file; unset it or write the file")
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, Path(path))
