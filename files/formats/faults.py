"""One sentence for all that a library raises of a damaged file, or of one part of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from shardqa.errors import BadDocument, DocumentTooLarge, ShardqaError

PANIC = "PanicException"  # of a library in Rust (calamine); no Exception, and of no module that can be imported


@contextmanager
def readable(kind: str, remedy: str = "") -> Iterator[None]:
    """Raises BadDocument in the place of whatever a library raises of a file."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, ShardqaError) or not is_of_file(error):
            raise
        raise BadDocument(f"not {kind} that can be read: {why(error)}{remedy}") from error


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
