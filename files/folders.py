"""Files and folders as one stream of documents, in an order that does not change between runs.

A SourceFiles belongs to the thread that iterates it; `total` and `done()` may be asked from any thread, for progress.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shardqa.checks import text_id
from shardqa.errors import BadDocument
from shardqa.files import formats
from shardqa.files.known import FileRead, KnownFiles, Stamp, page_digest
from shardqa.files.reader_process import OCR_TIMES, ReaderProcess
from shardqa.files.source_file import TEXT_FIELD, Item, Skipped, SourceFile, Textless, printable
from shardqa.schema import Document

STDIN = Path("-")
STDIN_NAME = "stdin.jsonl"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read, or with a `reason` one to skip."""

    path: Path
    name: str  # the id of its document: the path below the folder that was given
    size: int = 0  # bytes on disk
    refused: str = ""
    kind: str = ""  # of a file that has no text of its own, in the plural
    is_listed: bool = True  # else it is a folder, or a file in one, that may not be looked into
    stamp: Stamp = (0, 0)


class SourceFiles:
    """Iterates the documents of `paths`, and what is skipped, with reasons. Raises BadDocument for a missing path.

    Ids begin with `prefix`. Links inside folders are not followed without `follow_links`: they lead anywhere.
    With `ocr` text is recognized in pictures and in pages that have none; JSON has texts in `text_field`.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        prefix: str = "",
        follow_links: bool = False,
        memory: KnownFiles | None = None,
        *,
        ocr: bool = False,
        text_field: str = TEXT_FIELD,
    ) -> None:
        self.read: dict[str, FileRead] = {}  # by origin, of the files that were read
        self._pages: dict[str, str] = {}  # ids of files' documents, by the digests of what they say
        self.passed_over = 0  # documents of files that `memory` knows to be unchanged
        self._known = memory
        self._ocr, self._text_field = ocr, text_field
        paths = list(paths)
        self._roots = [os.path.abspath(path) for path in paths]
        self._files = [file for path in paths for file in _files(path, follow_links)]
        self._is_whole = all(file.is_listed for file in self._files)  # no folder refused to be listed
        self._prefix = prefix
        self.total = sum(file.size for file in self._files)
        self._before = 0  # bytes of the files that are done
        self._position = 0  # bytes of the file that is read now
        self._process = ReaderProcess()

    def has_files(self, folder: Path) -> bool:
        return any(folder in file.path.parents for file in self._files)

    def has_gone(self, id_: str, origin: str) -> bool:
        """Returns whether a file below the paths is gone, or was read and no longer holds this document.

        Where not every folder was listed, none has gone.
        """
        is_below = any(origin == root or origin.startswith(root.rstrip("/") + "/") for root in self._roots)
        if not (self._is_whole and is_below):
            return False
        if (read := self.read.get(origin)) is not None:
            return read.is_complete and id_ not in read.ids
        return not os.path.lexists(origin)

    def done(self) -> int:
        """Returns the bytes on disk read so far, without those that were only read ahead."""
        return self._before + self._position

    def __iter__(self) -> Iterator[Item]:
        try:
            for file in self._files:
                yield from self._read(file)
                self._before, self._position = self._before + file.size, 0
        finally:
            self._process.end()

    def _read(self, file: FoundFile) -> Iterator[Item]:
        # before it is opened: a folder of pictures is not read through
        if kind := file.kind or formats.textless(file.name, self._ocr):
            yield Textless(printable(str(file.path)), kind)
            return
        if file.refused:
            yield Skipped(printable(str(file.path)), file.refused)
            return
        if file.path == STDIN:
            yield from self._read_stdin()
            return
        origin = printable(os.path.abspath(file.path))
        ids = self._known.unchanged(origin, file.stamp) if self._known is not None else None
        if ids is not None:
            self.passed_over += len(ids)
            if ids and self._known is not None:
                self._pages.setdefault(self._known.page(origin), ids[0])
            return
        items = self.read.setdefault(origin, FileRead(file.stamp)).noted(self._items(file))
        yield from self._once(items, self._prefix + file.name)

    def _items(self, file: FoundFile) -> Iterator[Item]:
        opens = partial(SourceFile.open, file.path, self._prefix + file.name, formats.read, self._ocr, self._text_field)
        size = file.size * (OCR_TIMES if self._ocr else 1)
        for item, position in self._process.items_and_fault(printable(str(file.path)), size, opens):
            self._position = position
            yield item

    def _once(self, items: Iterable[Item], name: str) -> Iterator[Item]:
        """Leaves out a document that says just what another file's says: manuals have pages twice."""
        for item in items:
            page = page_digest(item) if isinstance(item, Document) and item.id == name else ""
            if page and self._pages.setdefault(page, name) != name:
                yield Textless(printable(name), "copies of other files")
            else:
                yield item

    def _read_stdin(self) -> Iterator[Item]:
        """Reads lines of JSON from stdin. A line without an id is named by its text, since its number may change."""
        with tempfile.TemporaryFile() as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.seek(0)
            source = SourceFile(spool, STDIN_NAME, "stdin", "", formats.read)
            source.text_field = self._text_field
            for item in formats.read(source):
                if isinstance(item, Document):
                    is_line = item.id.startswith(f"{STDIN_NAME}/")
                    item = item.model_copy(update={"id": self._prefix + (text_id(item.text) if is_line else item.id)})
                yield item


def _files(path: Path, follow_links: bool) -> Iterator[FoundFile]:
    """Yields the files: one given by itself has its own name, those of a folder their path below it; `-` is stdin."""
    if path == STDIN:
        yield FoundFile(STDIN, STDIN_NAME)
    elif path.is_dir():
        yield from _below(path, follow_links)
    elif path.exists():
        yield _found(path, path.parent, follow_links=True)  # named by the user: a link he means
    else:
        raise BadDocument(f"{printable(str(path))} is neither a file nor a folder; check its name")


def _below(root: Path, follow_links: bool) -> Iterator[FoundFile]:
    ancestors: set[tuple[int, int]] = set()  # folders, so that links can't lead in circles
    faults: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=faults.append, followlinks=follow_links):
        about = os.stat(folder)
        if (about.st_dev, about.st_ino) in ancestors:
            folders.clear()
            continue
        ancestors.add((about.st_dev, about.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if not follow_links and os.path.islink(os.path.join(folder, name))]
        if "_sources" in folders and not {"genindex.html", "searchindex.js"}.isdisjoint(names):
            folders.remove("_sources")
            yield FoundFile(Path(folder, "_sources"), "", kind="folders of pages' sources")  # as Sphinx copies them
        for name in sorted([*names, *links]):
            if not name.startswith("."):
                yield _found(Path(folder, name), root, follow_links)
    for fault in faults:
        yield _unlisted(Path(fault.filename), fault)


def _unlisted(path: Path, fault: OSError) -> FoundFile:
    reason = f"can't be read: {fault.strerror}; until it can, --prune removes nothing"
    return FoundFile(path, "", refused=reason, is_listed=False)


def _found(file: Path, folder: Path, follow_links: bool) -> FoundFile:
    name = printable(file.relative_to(folder).as_posix())
    if not follow_links and file.is_symlink():
        if file.exists() and file.resolve().is_relative_to(folder.resolve()):
            return FoundFile(file, name, kind="links within the folder")
        return FoundFile(file, name, refused="a link, which may lead out of the folder; --follow-links reads it")
    try:
        about = file.stat()
        return FoundFile(file, name, about.st_size, stamp=(about.st_mtime_ns, about.st_size))
    except FileNotFoundError as error:
        return FoundFile(file, name, refused=f"can't be read: {error.strerror}")
    except OSError as error:
        return _unlisted(file, error)
