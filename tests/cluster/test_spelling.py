"""A slip of the keys is asked as the word that the documents have, and said to be."""

import pytest

from shardqa.engine import Engine
from shardqa.filters import View
from shardqa.schema import Document

RULES = (
    "The tenant of the boathouse is Gunvor Aske. Subtenants need a permit. The Berta is moored at the second pier. "
    "All municipal dues are paid in March."
)


@pytest.fixture
async def rules(engine: Engine) -> Engine:
    await engine.documents.put(Document(id="rules", title="Boathouse", text=RULES))
    return engine


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Who is the tenent of the boathouse?", {"tenent": "tenant"}),
        ("When are munciipal dues paid?", {"munciipal": "municipal"}),
        ('Who is the "tenent" of the boathouse?', {}),
        ("Where is the Bertha moored?", {}),
        ("Where is the permot?", {"permot": "permit"}),
        ("Where is the permt?", {"permt": "permit"}),
        ("Where is the perma?", {}),
        ("where is the berth", {}),
        ("Where are the dunes?", {}),
    ],
)
async def test_a_word_that_no_passage_has_is_asked_as_its_neighbour(
    rules: Engine, question: str, words: dict[str, str]
) -> None:
    assert (await rules.ask(question)).corrected == words


async def test_an_answer_to_a_slip_is_that_to_the_word_and_kept_with_it(rules: Engine) -> None:
    right = await rules.ask("Who is the tenant of the boathouse?")
    first, again = [await rules.ask("Who is the tenent of the boathouse?") for _ in range(2)]
    assert (first.answer, first.score, first.absent) == ("Gunvor Aske", right.score, [])
    assert (again.cache, again.corrected, again.answer) == ("process", {"tenent": "tenant"}, first.answer)


async def test_what_is_hidden_lends_no_word(rules: Engine) -> None:
    await rules.documents.put(Document(id="open", title="Notes", text="A boathouse stands by the lake."))
    question = rules.question("Who is the tenent?", filter=View(title="Notes"))
    assert (await rules.ask(question)).corrected == {}
