"""Settings that are no plain values."""

import pytest

from shardqa.config import Settings


@pytest.mark.parametrize(
    ("redis", "addresses"),
    [
        ("127.0.0.1:7000", [("127.0.0.1", 7000)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , [::1]:2,", [("a", 1), ("::1", 2)]),
    ],
)
def test_the_addresses_of_the_cluster_are_separated_by_commas(redis: str, addresses: list[tuple[str, int]]) -> None:
    assert Settings(redis=redis).addresses == addresses


@pytest.mark.parametrize("redis", ["", ",", "a", "a:", ":1", "a:b", "a:1,b", "a:0", "a:65536", "a:²"])
def test_what_is_no_address_is_refused_with_the_form(redis: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        _ = Settings(redis=redis).addresses
