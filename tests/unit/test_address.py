"""Addresses of Redis as people write them, and settings that are misspelt."""

import pytest
from pydantic import ValidationError

from shardqa.config import Settings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHARDQA_REDIS", raising=False)


def test_a_redis_address_brings_user_and_password() -> None:
    found = Settings(redis="redis://app:p%40ss@db.example:7000")
    assert (found.redis, found.addresses) == ("db.example:7000", [("db.example", 7000)])
    assert found.credentials == ("app", "p@ss")
    assert found.tls_options == {}


def test_a_rediss_address_brings_tls_and_its_files() -> None:
    found = Settings(redis="rediss://db:7000?ssl_ca_certs=/ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem")
    assert found.tls_options == {
        "ssl": True,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        "ssl_ca_certs": "/ca.pem",
        "ssl_certfile": "/c.pem",
        "ssl_keyfile": "/k.pem",
    }
    unchecked = Settings(redis="rediss://db:7000?ssl_cert_reqs=none").tls_options
    assert (unchecked["ssl_cert_reqs"], unchecked["ssl_check_hostname"]) == ("none", False)


def test_what_is_given_by_itself_goes_ahead_of_the_address() -> None:
    assert Settings(redis="redis://app:old@db:7000", user="ops", password="new").credentials == ("ops", "new")


def test_several_addresses_and_ipv6_and_no_port() -> None:
    found = Settings(redis="redis://:s@[::1]:7001/0, redis://:s@b")
    assert found.addresses == [("::1", 7001), ("b", 6379)]
    assert found.credentials == ("default", "s")


@pytest.mark.parametrize(
    ("written", "why"),
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
def test_a_wrong_address_is_told_without_its_password(written: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as told:
        Settings(redis=written)
    assert "secret" not in str(told.value)


def test_a_misspelt_variable_is_refused_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDQA_TIMOUT", "3")
    with pytest.raises(
        ValueError, match="SHARDQA_TIMOUT in the environment is no setting; did you mean SHARDQA_TIMEOUT"
    ):
        Settings()
