"""Search and explanations on three real shards."""

import asyncio

import pytest

from shardqa.engine import Engine
from shardqa.errors import BadLimit, UnknownCorpus
from shardqa.filters import DocumentFilter
from shardqa.schema import Document, Step

TEXT = "🦉 The mills of {place} were built by Ada {place}son in {year}. Élan’s river drove them."
PLACES = ["Hallow", "Brennick", "Tarn", "Ostby", "Quill", "Merrow"]
TEXTS = {f"{place} {n}.md": TEXT.format(place=place, year=1800 + n) for n, place in enumerate(PLACES)}
QUESTION = "Who built the mill of Tarn?"


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    await asyncio.gather(
        *(
            engine.documents.put(Document(id=one, text=text, metadata={"of": one, "year": int(one.split()[1][0])}))
            for one, text in TEXTS.items()
        )
    )
    return engine


async def test_a_search_gives_the_ranking_with_the_words_marked_where_they_stand(filled: Engine, corpus: str) -> None:
    found = await filled.search(QUESTION, limit=4)
    ranked = await filled.ranking.rank(filled.question(QUESTION, corpus=corpus), 4)
    assert [(one.key, one.score) for one in found.passages] == [(one.key, one.score) for one in ranked.passages]
    best = found.passages[0]
    assert (best.document, best.metadata) == ("Tarn 2.md", {"of": "Tarn 2.md", "year": 2})
    text = TEXTS[best.document]
    assert text[best.start : best.end] == best.text
    assert [text[mark.start : mark.end] for mark in best.highlights] == ["mills", "Tarn", "built"]


async def test_what_can_not_be_searched_is_refused(filled: Engine) -> None:
    with pytest.raises(UnknownCorpus):
        await filled.search(QUESTION, corpus="nobody")
    with pytest.raises(BadLimit):
        await filled.search(QUESTION, limit=101)


async def test_an_explanation_adds_up_to_the_answer(filled: Engine) -> None:
    why = await filled.explain(QUESTION)
    assert why.answer.answer == "Ada Tarnson"
    assert {term.term: term.df for term in why.terms} == {"built": 6, "mill": 6, "tarn": 1}
    for passage in why.passages:
        assert passage.why is not None
        assert passage.why.score == passage.score
    best = why.spans[0]
    assert (best.answer, best.score) == (why.answer.answer, why.answer.score)
    assert best.margin == pytest.approx(best.span_logit - best.null_logit)
    signals = {"margin", "lag", "gap", "fall", "length", "rank", "evidence", "relevance"}
    assert set(best.log_odds) == {"bias", *signals, "missing", "lost", "said", "whole"}
    nodes = {node.id: node.kind for node in why.graph.nodes}
    assert {"question", "term", "passage", "document", "shard", "answer"} == set(nodes.values())
    assert all(edge.source in nodes and edge.target in nodes for edge in why.graph.edges)


async def test_the_steps_of_an_answer_are_told_in_order(filled: Engine) -> None:
    steps = list[Step]()
    answer = await filled.ask(QUESTION, fresh=True, on_step=steps.append)
    assert [step.step for step in steps][:3] == ["terms", "rank", "read"]
    assert steps[0].passages == len(TEXTS)
    assert steps[1].documents[0] == "Tarn 2.md"
    best = steps[-1].best
    assert best is not None
    assert best.answer == answer.answer
    again = list[Step]()
    await filled.ask(QUESTION, on_step=again.append)
    assert not again, "a kept answer has none"


async def test_a_filter_leaves_documents_out_and_changes_no_score(filled: Engine) -> None:
    chosen = DocumentFilter(metadata={"year": {"gte": 3}})
    plain = await filled.search("Who built the mills?", limit=100)
    found = await filled.search("Who built the mills?", limit=100, filter=chosen)
    assert [(one.key, one.score) for one in found.passages] == [
        (one.key, one.score) for one in plain.passages if one.metadata["year"] >= 3
    ]
    assert len(found.passages) == 3


async def test_an_answer_is_of_what_its_filter_lets_through_and_brings_the_metadata(filled: Engine) -> None:
    question = "Who built the mills by the river?"
    for place, year in (("Ostby", 3), ("Quill", 4)):
        for cache in (None, "process"):
            answer = await filled.ask(question, filter=DocumentFilter(metadata={"year": year}))
            assert (answer.answer, answer.metadata, answer.cache) == (
                f"Ada {place}son",
                {"of": f"{place} {year}.md", "year": year},
                cache,
            )
    nothing = await filled.ask(question, filter=DocumentFilter(metadata={"year": 99}))
    assert nothing.no_answer
    assert nothing.n_best == []
    why = await filled.explain(question, filter=DocumentFilter(metadata={"year": 4}))
    assert [one.document for one in why.passages] == ["Quill 4.md"]


async def test_metadata_that_changes_alone_changes_what_a_filter_lets_through(filled: Engine) -> None:
    chosen = DocumentFilter(metadata={"state": "final"})
    assert (await filled.ask(QUESTION, filter=chosen)).no_answer
    name = "Tarn 2.md"
    await filled.documents.put(Document(id=name, text=TEXTS[name], metadata={"state": "final"}))
    answer = await filled.ask(QUESTION, filter=chosen)
    assert (answer.answer, answer.metadata) == ("Ada Tarnson", {"state": "final"})
