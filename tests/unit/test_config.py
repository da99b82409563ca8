"""Settings that are no plain values: addresses of Redis as people write them, users, and names that are misspelt."""

import pytest
from pydantic import ValidationError

from shardqa.config import Settings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDQA_REDIS", raising=False)


@pytest.mark.parametrize(
    ("redis", "addresses"),
    [
        ("127.0.0.1:7000", [("127.0.0.1", 7000)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , [::1]:2,", [("a", 1), ("::1", 2)]),
        ("redis://:s@[::1]:7001/0, redis://:s@b", [("::1", 7001), ("b", 6379)]),
    ],
)
def test_the_addresses_of_the_cluster_are_separated_by_commas(redis: str, addresses: list[tuple[str, int]]) -> None:
    assert Settings(redis=redis).addresses == addresses


@pytest.mark.parametrize("redis", ["", ",", "a", "a:", ":1", "a:b", "a:1,b", "a:0", "a:65536", "a:²"])
def test_what_is_no_address_is_refused_with_the_form(redis: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        _ = Settings(redis=redis).addresses


@pytest.mark.parametrize(
    ("settings", "credentials"),
    [
        ({}, (None, None)),
        ({"user": "app"}, ("app", None)),
        ({"user": "app", "password": "s"}, ("app", "s")),
        ({"redis": "redis://app:p%40ss@db.example:7000"}, ("app", "p@ss")),
        ({"redis": "redis://:s@a:1, redis://:s@b"}, ("default", "s")),
        ({"redis": "redis://app:old@db:7000", "user": "ops", "password": "new"}, ("ops", "new")),
    ],
)
def test_an_address_brings_user_and_password_that_settings_go_before(
    settings: dict[str, str], credentials: tuple[str | None, str | None]
) -> None:
    assert Settings(**settings).credentials == credentials  # type: ignore[arg-type]


def test_a_redis_address_is_kept_without_its_password_and_brings_no_tls() -> None:
    settings = Settings(redis="redis://app:p%40ss@db.example:7000")
    assert (settings.redis, settings.tls_options) == ("db.example:7000", {})


def test_a_rediss_address_brings_tls_and_its_files() -> None:
    files = {"ssl_ca_certs": "/ca.pem", "ssl_certfile": "/c.pem", "ssl_keyfile": "/k.pem"}
    address = "rediss://db:7000?" + "&".join(f"{name}={file}" for name, file in files.items())
    checks = {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
    assert Settings(redis=address).tls_options == {**checks, **files}
    unchecked = Settings(redis="rediss://db:7000?ssl_cert_reqs=none").tls_options
    assert (unchecked["ssl_cert_reqs"], unchecked["ssl_check_hostname"]) == ("none", False)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://u:secret@db:1", "http:// is no address of Redis"),
        ("redis://u:secret@db:7000/3", "database '3'"),
        ("redis://u:secret@db:x", "no number"),
        ("redis://u:secret@", "names no host"),
        ("redis://db?ssl_ca_certs=x", "takes no option"),
        ("rediss://db?ssl_min=x", "takes no option 'ssl_min'"),
        ("rediss://db?ssl_cert_reqs=maybe", "required or none"),
        ("redis://a:secret@x,redis://b:secret@y", "differ in user"),
    ],
)
def test_the_fault_of_a_wrong_address_hides_its_password(address: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as caught:
        Settings(redis=address)
    assert "secret" not in str(caught.value)


def test_a_misspelt_variable_is_refused_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDQA_TIMOUT", "3")
    with pytest.raises(ValueError, match=r"SHARDQA_TIMOUT .* is no setting; did you mean SHARDQA_TIMEOUT"):
        Settings()
