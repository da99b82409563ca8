"""A short form of `make torture`, under sanitizers: every fuzzer once."""

from collections.abc import Iterator

import pytest

from .torture import rounds  # noqa: TID251 (this package is tests/module)
from .torture.pair import Fault, Pair  # noqa: TID251

pytestmark = pytest.mark.slow  # it builds the sanitized module


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with rounds.running(tmp_path_factory.mktemp("torture")) as pair:
        yield pair


@pytest.mark.parametrize("name", rounds.FUZZERS)
def test_a_round_finds_nothing(pair: Pair, name: str) -> None:
    counts = rounds.Counts()
    rounds.play(pair, name, 1, counts, rounds.FUZZERS[name].short)
    assert counts.steps[name] >= rounds.FUZZERS[name].short
    assert not counts.found


def test_data_sets_that_differ_are_found(pair: Pair) -> None:
    replica = pair.replica.client()
    replica.config_set("replica-read-only", "no")
    replica.set("only here", 1)
    with pytest.raises(Fault, match="master and replica differ"):
        pair.check()
    replica.delete("only here")
    replica.config_set("replica-read-only", "yes")
    pair.check()
