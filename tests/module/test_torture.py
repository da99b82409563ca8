"""A short form of `make torture`: every fuzzer once, and the rounds that found something."""

from collections.abc import Iterator

import pytest

from . import torture  # noqa: TID251 (this package is tests/module)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[torture.Pair]:
    with torture.running(tmp_path_factory.mktemp("torture")) as pair:
        yield pair


@pytest.mark.parametrize(("name", "seed"), [*((name, 1) for name in torture.FUZZERS), *torture.kept()])
def test_a_round_finds_nothing(pair: torture.Pair, name: str, seed: int) -> None:
    torture.play(pair, name, seed)
