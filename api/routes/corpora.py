"""/v1/corpora: what can be asked; one of them with its sizes, and its end."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from shardqa.api.gate import Route, operation
from shardqa.api.requests import as_json
from shardqa.api.state import Shared
from shardqa.http_schema import CorpusWords, Listed, StoredWords
from shardqa.schema import Dropping, Facets, OneCorpus, Suggestions

router = APIRouter(prefix="/v1", tags=["documents"], route_class=Route)


Name = Annotated[str, Path(description="The corpus.")]


@router.get("/corpora", **operation("ask", "List the corpora", Listed))
async def get_corpora(state: Shared) -> Response:
    """Every corpus with its sizes; `epoch` changes whenever the corpus does."""
    corpora = await state.engine.corpora()
    openings = {name: name in state.settings.openings for name in ("feedback", "questions")}
    answer = Listed(default=state.settings.corpus, **openings, **dict(corpora))
    return as_json(answer)


@router.get("/corpora/{corpus}", **operation("ask", "Look at a corpus", OneCorpus))
async def get_corpus(corpus: Name, state: Shared) -> Response:
    """The sizes of a corpus, or how far its removal is; 404 once it is gone."""
    return as_json(await state.engine.corpus(corpus))


@router.delete("/corpora/{corpus}", status_code=202, **operation("admin", "Drop a corpus", Dropping))
async def delete_corpus(corpus: Name, state: Shared) -> Response:
    """It can't be asked from the reply on. Its documents are removed in small slices.

    `GET /v1/corpora/{corpus}` tells how far that is, and is 404 once all is gone. Dropping it once more does no harm.
    """
    return as_json(await state.engine.drop(corpus), 202, {"Location": f"/v1/corpora/{corpus}"})


@router.get("/corpora/{corpus}/suggestions", **operation("ask", "Suggest what to ask about", Suggestions))
async def get_suggestions(corpus: Name, state: Shared) -> Response:
    """Titles and headings of the corpus' first documents."""
    return as_json(await state.engine.suggestions(corpus))


@router.get("/corpora/{corpus}/facets", **operation("ask", "Count documents by folder and tag", Facets))
async def get_facets(corpus: Name, state: Shared) -> Response:
    """What `filter` can narrow a question to: a folder by `source`, a tag by `metadata.tags`; 200 of each at most."""
    return as_json(await state.engine.facets(corpus))


@router.get("/corpora/{corpus}/words", **operation("ingest", "Read a corpus' words"))
async def get_words(corpus: Name, state: Shared) -> CorpusWords:
    """Synonyms and pinned answers of the corpus; none where nobody gave it any."""
    return await state.engine.words(corpus)


@router.put("/corpora/{corpus}/words", **operation("ingest", "Give a corpus its words"))
async def put_words(corpus: Name, words: CorpusWords, state: Shared) -> StoredWords:
    """All of them, in place of those before. Other processes go on with older ones for 5 seconds."""
    return await state.engine.store_words(corpus, words)
