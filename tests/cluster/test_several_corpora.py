"""One question of several corpora, on three real shards: as if their documents stood in one."""

import asyncio

import pytest

from shardqa.engine import Engine
from shardqa.errors import UnknownCorpus
from shardqa.schema import Document

MILLS = {
    "hallow.md": "The mill of Hallow was built by Ada Holm in 1801. It grinds rye.",
    "tarn.md": "The mill of Tarn was built by Piet Vermeer in 1820. A flood took its wheel.",
}
TOWERS = {
    "tarn.md": "The tower of Brack has a bell, which Nils Quill cast in 1632 for the mill of Tarn.",
    "merrow.md": "Storks nest on the tower of Merrow, which Ida Moen built in 1711.",
}
QUESTION = "Who built the mill of Tarn?"


@pytest.fixture
async def corpora(engine: Engine, corpus: str) -> list[str]:
    names = [f"{corpus}-mills", f"{corpus}-towers"]
    documents = [
        *(Document(id=id, text=text, corpus=names[0]) for id, text in MILLS.items()),
        *(Document(id=id, text=text, corpus=names[1]) for id, text in TOWERS.items()),
        *(Document(id=f"m-{id}", text=text, corpus=corpus) for id, text in MILLS.items()),
        *(Document(id=f"t-{id}", text=text, corpus=corpus) for id, text in TOWERS.items()),
    ]
    await asyncio.gather(*(engine.documents.put(one) for one in documents))
    return names


async def test_several_corpora_are_answered_from_as_one_that_has_all_their_documents(
    engine: Engine, corpora: list[str], corpus: str
) -> None:
    several, one = await engine.ask(QUESTION, corpus=corpora), await engine.ask(QUESTION, corpus=corpus)
    assert several.answer == one.answer
    assert several.score == pytest.approx(one.score, abs=1e-3)
    assert (several.corpus, several.document_corpus, several.document) == (",".join(corpora), corpora[0], "tarn.md")
    assert {part.corpus for part in several.parts} == {corpora[0]}
    found = [await engine.search(QUESTION, corpus=where) for where in (corpora, corpus)]
    scores = [sorted(round(passage.score, 9) for passage in each.passages) for each in found]
    assert scores[0] == scores[1]
    assert {(passage.corpus, passage.document) for passage in found[0].passages} >= {
        (corpora[0], "tarn.md"),
        (corpora[1], "tarn.md"),
    }


async def test_documents_of_one_id_stay_apart(engine: Engine, corpora: list[str]) -> None:
    question = "Who cast the bell for the mill of Tarn?"
    answer = await engine.ask(question, corpus=corpora, n_best=10, form="sentences")
    assert (answer.document_corpus, answer.document) == (corpora[1], "tarn.md")
    named = {(one.corpus, one.document) for one in answer.n_best}
    assert {(corpora[0], "tarn.md"), (corpora[1], "tarn.md")} <= named


async def test_an_answer_is_kept_under_the_set_until_one_of_it_changes(engine: Engine, corpora: list[str]) -> None:
    first = await engine.ask(QUESTION, corpus=corpora)
    assert (await engine.ask(QUESTION, corpus=",".join(reversed(corpora)))).cached
    alone = await engine.ask(QUESTION, corpus=corpora[0])
    assert not alone.cached
    assert alone.shards[0].key != first.shards[0].key, "a shard's numbers among several are not those of one"
    await engine.documents.put(Document(id="new.md", text="Ada Holm built the mill of Ostby.", corpus=corpora[1]))
    again = await engine.ask(QUESTION, corpus=corpora)
    assert (again.cached, again.document_corpus) == (False, corpora[0])


async def test_a_corpus_that_is_not_there_is_named(engine: Engine, corpora: list[str]) -> None:
    with pytest.raises(UnknownCorpus, match="there is no corpus 'nobody'"):
        await engine.ask(QUESTION, corpus=[*corpora, "nobody"])


async def test_an_explanation_of_several_adds_up(engine: Engine, corpora: list[str]) -> None:
    why = await engine.explain(QUESTION, corpus=corpora)
    assert all(passage.why is not None and passage.why.score == passage.score for passage in why.passages)
    assert why.size == len(MILLS) + len(TOWERS)
