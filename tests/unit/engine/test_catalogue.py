from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from shardqa.config import Settings
from shardqa.engine.catalogue import Catalogue
from shardqa.engine.epochs import Epochs
from shardqa.errors import SeveralCorpora
from tests.unit.engine.test_input import NoShards


def catalogue_of(names: list[str], monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    nothing: Any = None
    catalogue = Catalogue(Settings(), nothing, Epochs(NoShards()), nothing)
    corpora = SimpleNamespace(corpora=[SimpleNamespace(name=name) for name in names], partial=False)
    monkeypatch.setattr(catalogue, "corpora", AsyncMock(return_value=corpora))
    return catalogue


@pytest.mark.parametrize(("names", "name"), [(["seeds"], "seeds"), (["handbook", "seeds"], "handbook"), ([], "seeds")])
async def test_without_a_name_the_users_own_corpus_is_asked(
    names: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await catalogue_of(names, monkeypatch).asked() == name


async def test_several_own_corpora_want_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = catalogue_of(["a", "b", "seeds"], monkeypatch)
    with pytest.raises(SeveralCorpora, match="there are the corpora a, b, and the question names none"):
        await catalogue.asked()
    assert await catalogue.asked(is_for=lambda name: name == "b") == "b"
