"""One document's fault does nothing to the others of a run."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shardqa.errors import AnswerTimeout
from shardqa.files.folders import SourceFiles
from shardqa.files.source_file import Item, Textless
from shardqa.loader import ingest
from shardqa.schema import Document, Ingested


class Texts:
    total = 0

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def done(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Item]:
        yield from (Document(id=name, text="A text.") for name in self._ids)


class LateEngine:
    """An engine of one shard, for which documents that are named late-… take too long."""

    shards = SimpleNamespace(nodes=lambda: [None])

    @property
    def documents(self) -> "LateEngine":
        return self

    together = documents

    async def put_together(self, documents: Sequence[Document], replace: bool) -> list[Any]:
        return [None] * len(documents)

    async def put(self, document: Document, replace: bool) -> Ingested:
        if document.id.startswith("late"):
            raise AnswerTimeout("shard 1 did not answer in time")
        return Ingested(corpus="c", document=document.id, passages=1, characters=7, changed=True)


@pytest.fixture
def late_engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(ingest, "FAILOVER_SECONDS", 0.0)
    return LateEngine()


async def test_a_document_that_takes_too_long_is_skipped_and_the_others_are_put(late_engine: Any) -> None:
    summary = await ingest.ingest(late_engine, Texts("late", *map(str, range(50))), "c")
    assert (summary.documents, summary.skipped) == (50, 1)
    assert "run the ingest again" in summary.reasons[0].reason


async def test_many_late_documents_among_others_do_not_end_the_run(late_engine: Any) -> None:
    names = [name for n in range(2 * ingest.LATE_IN_A_ROW) for name in (f"late-{n}", f"{n}")]
    summary = await ingest.ingest(late_engine, Texts(*names), "c")
    assert (summary.documents, summary.skipped) == (len(names) // 2, len(names) // 2)


async def test_a_shard_that_finishes_nothing_ends_the_run(late_engine: Any) -> None:
    with pytest.raises(AnswerTimeout):
        await ingest.ingest(late_engine, Texts(*(f"late-{n}" for n in range(100))), "c")


async def test_what_is_on_its_way_when_a_run_is_stopped_is_counted(late_engine: Any) -> None:
    put, start, counts = late_engine.put, asyncio.Event(), list[int]()

    async def late(*document: Any) -> Any:
        start.set()
        await asyncio.sleep(0.1)
        return await put(*document)

    late_engine.put = late
    run = asyncio.create_task(
        ingest.ingest(late_engine, Texts("a"), "c", lambda summary: counts.append(summary.documents))
    )
    await start.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert counts[-1] == 1


class SlowEngine(LateEngine):
    """A shard that finishes a document after the first try has run out of time, and the second finds it done."""

    def __init__(self) -> None:
        self._tries = 0

    async def put(self, document: Document, replace: bool) -> Ingested:
        self._tries += 1
        if self._tries == 1:
            raise AnswerTimeout("shard 1 did not answer in time")
        return Ingested(corpus="c", document=document.id, passages=1, characters=7, changed=False)


async def test_a_document_that_a_later_try_finds_done_counts_as_written() -> None:
    summary = await ingest.ingest(SlowEngine(), Texts("slow", "same"), "c")  # type: ignore[arg-type]
    assert (summary.documents, summary.unchanged, summary.bytes_written) == (1, 1, len("A text."))


def test_the_same_page_under_two_names_is_found_once_and_counted(tmp_path: Path) -> None:
    for name, text in {"a.txt": "Ada rows.", "b.txt": "Bob sails.", "c.txt": "Ada rows."}.items():
        (tmp_path / name).write_text(text)
    first, second, copy = SourceFiles([tmp_path])
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert (first.id, second.id, copy) == ("a.txt", "b.txt", Textless("c.txt", "copies of other files"))


@pytest.mark.parametrize("mark", ["genindex.html", "searchindex.js"])
def test_sources_of_pages_that_sphinx_copies_are_passed_by(tmp_path: Path, mark: str) -> None:
    (tmp_path / "_sources").mkdir()
    (tmp_path / "_sources" / "dam.rst.txt").write_text("The dam")
    (tmp_path / mark).touch()
    found = [item for item in SourceFiles([tmp_path]) if isinstance(item, Document)]
    assert [document.id for document in found] == []
