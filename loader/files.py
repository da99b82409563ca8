"""Files and folders as one stream of documents, in an order that does not change between runs.

A Reading belongs to the thread that iterates it; `total` and `done()` may be asked from any thread, for progress.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.loader.formats import READERS
from shardqa.loader.opened import Item, Opened, Skipped, printable


class Reading:
    """Iterates the documents of `paths`, and what is skipped, with reasons. Raises BadDocument for a missing path."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = [file for path in paths for file in _files(path)]
        self.total = sum(_size(path) for path, _ in self._files)  # bytes on disk
        self._before = 0  # bytes of the files that are done
        self._opened: Opened | None = None

    def done(self) -> int:
        """Bytes on disk read so far."""
        opened = self._opened
        return self._before + (opened.position if opened is not None else 0)

    def __iter__(self) -> Iterator[Item]:
        for path, name in self._files:
            yield from self._read(path, name)
            self._before += _size(path)

    def _read(self, path: Path, name: str) -> Iterator[Item]:
        reader = READERS.get(suffix(path))
        if reader is None:
            known = " ".join(READERS)
            yield Skipped(
                printable(str(path)), f"unknown suffix {suffix(path) or '(none)'!r}; known: {known}, each also with .gz"
            )
            return
        try:
            self._opened = Opened(path, name)
        except OSError as error:
            yield Skipped(printable(str(path)), f"can't be read: {error.strerror}")
            return
        try:
            yield from reader(self._opened)
        except (BadDocument, DocumentTooLarge) as error:
            yield Skipped(printable(str(path)), str(error))
        except OSError as error:
            yield Skipped(printable(str(path)), f"can't be read: {error.strerror or error}")
        finally:
            opened, self._opened = self._opened, None
            opened.close()


def _size(path: Path) -> int:
    """Bytes on disk; 0 for a file that is gone or a broken link, which reading will tell."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def suffix(path: Path) -> str:
    """The suffix that names the format: `.txt` of both `a.txt` and `a.txt.gz`."""
    return Path(_bare(path)).suffix.lower()


def _bare(path: Path) -> str:
    return path.name[:-3] if path.name.lower().endswith(".gz") else path.name


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """(file, name): the name is the path below `path` without suffixes; a single file's is its own."""
    if path.is_dir():
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if not name.startswith("."):
                    file = Path(folder, name)
                    yield file, _name(file, path)
    elif path.is_file():
        yield path, _name(path, path.parent)
    else:
        raise BadDocument(f"{printable(str(path))} is neither a file nor a folder; check its name")


def _name(file: Path, folder: Path) -> str:
    below = file.relative_to(folder).parent / _bare(file)
    known = below.with_suffix("") if below.suffix.lower() in READERS else below
    return printable(known.as_posix())
