"""`shardqa ls`, `show`, `search` and `rm`: the documents of a corpus, without asking anything."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.text import Text

from shardqa.cli.connection import filter_of, with_engine
from shardqa.cli.faults import report
from shardqa.cli.ingest import PUT_SECONDS
from shardqa.cli.options import CorpusOption, FilterOption, JsonOption, SourceOption, Target, on_cluster
from shardqa.cli.output import NOTHING, PARTLY, end, out, print_json, print_table, say
from shardqa.engine import Engine
from shardqa.engine.catalogue import MAX_PAGE
from shardqa.errors import ClusterUnavailable, UnknownDocument
from shardqa.places import row_of
from shardqa.schema import Document, DocumentInfo, FoundPassage

DOCUMENTS_SHOWN = 1_000  # documents of a list, unless more are asked for
MARKS = ("»", "«")  # around the question's words where there is no colour


@on_cluster
def ls(
    target: Target,
    corpus: CorpusOption = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Documents listed; 0 lists all.")] = DOCUMENTS_SHOWN,
    as_json: JsonOption = False,
) -> None:
    """A table of a corpus' documents: id, title, passages, bytes, source.

    Example: shardqa ls --corpus handbook --limit 0
    """
    settings = target.settings(corpus=corpus)

    async def work(engine: Engine) -> tuple[list[DocumentInfo], list[str]]:
        documents, failed, cursor = list[DocumentInfo](), set[str](), None
        while True:
            page = await engine.catalogue.documents(settings.corpus, cursor, MAX_PAGE)
            documents += page.documents
            failed.update(page.failed)
            cursor = page.cursor
            if cursor is None or (limit and len(documents) > limit):
                return documents, sorted(failed)

    documents, failed = with_engine(settings, work)
    first = sorted(documents[: limit or None], key=_in_order)
    if as_json:
        listed = [document.model_dump(mode="json") for document in first]
        print_json({"corpus": settings.corpus, "documents": listed, "partial": bool(failed), "failed": failed})
    else:
        rows = [(document.id, document.title, document.passages, document.bytes, document.source) for document in first]
        print_table(("id", "title", "passages", "bytes", "source"), rows)
    if len(documents) > len(first):
        say(f"there are more than {limit:,}; --limit 0 lists all")
    end(failed, True)


def _in_order(document: DocumentInfo) -> list[tuple[int, str]]:
    """Sorts by id, its numbers as such: row 10 of a file after row 9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", document.id)]


@on_cluster
def show(
    target: Target,
    id: Annotated[str, typer.Argument(help="A document's id, as 'ls' and 'ask' show it.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a document's text; with --json, everything that is stored about it.

    Example: shardqa show lake-ysolde.md --corpus seeds
    """
    settings = target.settings(corpus=corpus)

    async def work(engine: Engine) -> Document | ClusterUnavailable | None:
        try:
            return await engine.documents.get(settings.corpus, id)
        except ClusterUnavailable as fault:
            return fault

    document = with_engine(settings, work)
    if isinstance(document, ClusterUnavailable):  # of a cluster that answers
        report(document)
        raise typer.Exit(PARTLY)
    if document is None:
        raise UnknownDocument(f"there is no document {id!r} in the corpus {settings.corpus!r}; 'shardqa ls' lists them")
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        out.print(document.text, markup=False, end="" if document.text.endswith("\n") else "\n")


@on_cluster
def search(
    target: Target,
    question: Annotated[str, typer.Argument(help="A question or words.")],
    corpus: CorpusOption = None,
    limit: Annotated[int, typer.Option("--limit", help="Passages, 1 to 100.")] = 10,
    filter_: FilterOption = None,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """The passages that rank best, with the question's words marked; no reader runs. Exits with 1 without any.

    Example: shardqa search "observatory telescope" --corpus seeds --limit 3
    """
    settings = target.settings(corpus=corpus)
    documents = filter_of(filter_, source)
    result = with_engine(settings, lambda engine: engine.search(question, limit, filter=documents))
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        for n, passage in enumerate(result.passages, 1):
            where = f", {passage.place}" if passage.place is not None else ""
            corpus_too = f"{passage.corpus}: " if "," in result.corpus else ""
            characters = "" if passage.written else f", characters {passage.start} to {passage.end}"
            head = f"{corpus_too}{passage.document}{where} ({passage.title}){characters}"
            out.print(Text.assemble((f"{n:>3}  ", "dim"), (head, "bold"), (f"  {passage.score:.3f}", "dim")))
            out.print(Text.assemble("     ", marked(passage)))
    end(result.failed, bool(result.passages))


def marked(passage: FoundPassage) -> Text:
    """Returns a passage as one line and a line for each row of a table, its highlights marked."""
    text = Text()
    for words, cells in _stretches(passage):
        if cells:
            text.append("\n     " * bool(text))
        for piece, is_marked in _row_marked(words, row_of(cells)) if cells else words:
            word = piece if out.is_terminal or not is_marked else f"{MARKS[0]}{piece}{MARKS[1]}"
            text.append(_line(word), "bold green" if is_marked else "")
    return text


Pieces = list[tuple[str, bool]]  # words, and whether the question looks for them


def _stretches(passage: FoundPassage) -> Iterator[tuple[Pieces, Sequence[tuple[str, str]]]]:
    """Yields the parts of a passage between its marks, each with the cells of the row that it is."""
    ends = [max(at, passage.start) - passage.start for at, _ in passage.places] + [len(passage.text)]
    cells = [None, *(place.cells for _, place in passage.places)]
    after = 0
    for last, row in zip(ends, cells, strict=True):
        if after < last:
            yield _pieces(passage, after, last), row or ()
        after = last


def _pieces(passage: FoundPassage, after: int, last: int) -> Pieces:
    pieces = Pieces()
    for mark in passage.highlights:  # in characters of the document
        start, end = mark.start - passage.start, mark.end - passage.start
        if after <= start < last:
            pieces += [(passage.text[after:start], False), (passage.text[start:end], True)]
            after = end
    return [*pieces, (passage.text[after:last], False)]


def _row_marked(words: Pieces, row: str) -> Pieces:
    """Returns a row as its cells, with those words marked that are marked in the sentence of it."""
    marks = "|".join(re.escape(piece) for piece, is_marked in words if is_marked)
    pieces = re.split(rf"\b({marks})\b", row) if marks else [row]
    return [(piece, bool(n % 2)) for n, piece in enumerate(pieces)]


def _line(text: str) -> str:
    return text.replace("\n", " ")


@on_cluster
def rm(
    target: Target,
    ids: Annotated[list[str], typer.Argument(help="Document ids, as 'ls' and 'ask' show them.")],
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove documents with all that belongs to them: passages, tokens, cached answers.

    Example: shardqa rm lake-ysolde --corpus seeds
    """
    settings = target.settings(corpus=corpus, timeout=PUT_SECONDS)

    async def work(engine: Engine) -> dict[str, bool]:
        return {id_: await engine.documents.delete(settings.corpus, id_) for id_ in dict.fromkeys(ids)}

    was_there_by_id = with_engine(settings, work)
    if as_json:
        print_json({"corpus": settings.corpus, "removed": was_there_by_id})
    for id_, was_there in was_there_by_id.items():
        if was_there and not as_json:
            say(f"removed {id_}")
    missing = [id_ for id_, was_there in was_there_by_id.items() if not was_there]
    if missing:
        say(f"corpus {settings.corpus!r} has no document {', '.join(map(repr, missing))}")
        raise typer.Exit(NOTHING if len(missing) == len(was_there_by_id) else PARTLY)
