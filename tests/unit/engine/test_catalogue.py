from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from shardqa.config import Settings
from shardqa.engine.catalogue import Catalogue
from shardqa.engine.epochs import Epochs
from shardqa.errors import BadCorpusName, BadLimit, SeveralCorpora, UnknownCorpus
from shardqa.question import MAX_CORPORA
from tests.unit.engine.test_input import NoShards


def catalogue_of(names: list[str], monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    nothing: Any = None
    catalogue = Catalogue(Settings(), nothing, Epochs(NoShards()), nothing, nothing)
    corpora = SimpleNamespace(corpora=[SimpleNamespace(name=name) for name in names], partial=False)
    monkeypatch.setattr(catalogue, "corpora", AsyncMock(return_value=corpora))
    return catalogue


@pytest.mark.parametrize(("names", "name"), [(["seeds"], "seeds"), (["handbook", "seeds"], "handbook"), ([], "seeds")])
async def test_without_a_name_the_users_own_corpus_is_asked(
    names: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await catalogue_of(names, monkeypatch).asked() == (name,)


async def test_several_own_corpora_want_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = catalogue_of(["a", "b", "seeds"], monkeypatch)
    with pytest.raises(SeveralCorpora, match="there are the corpora a, b, and the question names none"):
        await catalogue.asked()
    assert await catalogue.asked(is_for=lambda name: name == "b") == ("b",)


async def test_a_star_means_all_that_the_asker_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = catalogue_of(["a", "b", "seeds"], monkeypatch)
    assert await catalogue.asked("*") == ("a", "b", "seeds")
    assert await catalogue.asked(["*"], lambda name: name != "a") == ("b", "seeds")
    with pytest.raises(UnknownCorpus):
        await catalogue.asked("*", lambda name: False)
    with pytest.raises(BadCorpusName):
        await catalogue.asked("a,*")


async def test_a_question_has_a_bound_of_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = catalogue_of([f"c{n}" for n in range(MAX_CORPORA + 1)], monkeypatch)
    with pytest.raises(BadLimit, match="corpora=33 is outside 1 to 32"):
        await catalogue.asked("*")
