"""One sentence for all that a library raises of a damaged file, or of one part of it."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from shardqa.errors import BadDocument, DocumentTooLarge, ShardqaError

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    ValueError,
    OverflowError,
    TypeError,
    AttributeError,
    AssertionError,
    OSError,
    RuntimeError,
)
"""What parsers raise of damaged files; RuntimeError: an encrypted entry, a way of packing that Python does not know
(NotImplementedError is one), or nesting without end."""
PANIC = "PanicException"  # of a library in Rust (calamine); no Exception, and of no module that can be imported


@contextmanager
def readable(kind: str, *own: type[Exception], remedy: str = "") -> Iterator[None]:
    """Raises BadDocument in the place of DAMAGE and of the faults that a library defines itself."""
    faults: tuple[type[Exception], ...] = (*DAMAGE, *own)
    try:
        yield
    except faults as error:
        why = f"{type(error).__name__} {str(error)[:120]}".strip()
        raise BadDocument(f"not {kind} that can be read: {why}{remedy}") from error


@contextmanager
def apart(losses: list[str], part: str) -> Iterator[None]:
    """Adds why to `losses` where `part` of a file can't be read, whatever is raised of it: the others are read.

    Raises DocumentTooLarge, which is of the whole file, and what is of no file.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, DocumentTooLarge) or not is_of_file(error):
            raise
        losses.append(f"{part} can't be read: {why(error)}")


def is_of_file(error: BaseException) -> bool:
    """Returns whether a reader may raise it of a file: anything, but what the process is short of or ended by."""
    if isinstance(error, Exception):
        return not isinstance(error, MemoryError)
    return type(error).__name__ == PANIC


def why(error: BaseException) -> str:
    """Says what is wrong with a file by what its reader raised."""
    if isinstance(error, RecursionError):
        return "it nests too deep"
    if isinstance(error, ShardqaError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__} {str(error)[:120]}".strip()
