"""Words that differ by a mark alone: asked one after another, so that a shared cache key would show."""

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


async def test_the_very_word_ranks_first_and_is_answered_from_its_own_document(engine: Engine, corpus: str) -> None:
    for name, text in CORPUS.items():
        await engine.documents.put(Document(id=name, text=text))
    for question, document, word in ANSWERS * 2:  # the second time from the cache
        ranked = await engine.ranking.rank(engine.question(question, corpus=corpus), 3)
        assert ranked.passages[0].document == document, question
        best = (await engine.ask(question)).n_best[0]
        assert best.document == document, question
        assert word in best.answer
