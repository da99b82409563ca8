"""One sentence for all that a library raises of a damaged file."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from shardqa.errors import BadDocument

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


@contextmanager
def readable(kind: str, *own: type[Exception], remedy: str = "") -> Iterator[None]:
    """Raises BadDocument in the place of DAMAGE and of the faults that a library defines itself."""
    faults: tuple[type[Exception], ...] = (*DAMAGE, *own)
    try:
        yield
    except faults as error:
        why = f"{type(error).__name__} {str(error)[:120]}".strip()
        raise BadDocument(f"not {kind} that can be read: {why}{remedy}") from error
