"""Words that differ by a mark alone: asked one after another, so that a shared cache key would show."""

import pytest

from shardqa.engine import Engine
from shardqa.schema import Document

CORPUS = {
    "c": "The language C was created by Dennis Ritchie at Bell Labs in 1972.",
    "cpp": "The language C++ was created by Bjarne Stroustrup at Bell Labs in 1985.",
    "cs": "The language C# was created by Anders Hejlsberg at Microsoft in 2000.",
    "fs": "The language F# was created by Don Syme at Microsoft Research in 2005.",
    "f": "The language F was created by Walt Brainerd as a part of Fortran.",
    "net": "A net was created by Ada Holm from hemp for fishing in the river.",
    "dotnet": "The platform .NET was created by Scott Guthrie and others at Microsoft in 2002.",
    "power": "The number 10⁵ was called a lakh by the merchants of Delhi.",
    "number": "The number 105 was called a gross of errors by the printers of Leiden.",
}
ANSWERS = [
    ("Who created the language C?", "c", "Ritchie"),
    ("Who created the language C++?", "cpp", "Stroustrup"),
    ("Who created the language C#?", "cs", "Hejlsberg"),
    ("Who created the language F#?", "fs", "Syme"),
    ("Who created the language F?", "f", "Brainerd"),
    ("Who created the platform .NET?", "dotnet", "Guthrie"),
    ("What was the number 10⁵ called?", "power", "lakh"),
    ("What was the number 105 called?", "number", "gross"),
]


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    for name, text in CORPUS.items():
        await engine.documents.put(Document(id=name, text=text))
    return engine


async def test_the_passage_with_the_very_word_ranks_first(filled: Engine) -> None:
    ranked = {question: await filled.ranking.rank(filled.question(question), 3) for question, _, _ in ANSWERS}
    assert {question: found.passages[0].document for question, found in ranked.items()} == {
        question: document for question, document, _ in ANSWERS
    }


async def test_each_is_answered_from_its_own_document(filled: Engine) -> None:
    for _ in range(2):  # the second time from the cache
        answers = {question: await filled.ask(question) for question, _, _ in ANSWERS}
        wrong = {
            question: (answers[question].n_best[0].document, answers[question].n_best[0].answer)
            for question, document, word in ANSWERS
            if answers[question].n_best[0].document != document or word not in answers[question].n_best[0].answer
        }
        assert not wrong
