"""Folders that are written atomically: complete, or not there."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardqa.errors import BadData, SetupError

# What the system says when no more can be written: disk, quota, or the largest file allowed.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def written_atomically(out: Path) -> Iterator[Path]:
    """Yields a folder beside ``out`` to write into; when all went well it is renamed to ``out``, else removed.

    Raises BadData when ``out`` is there already with something in it, SetupError when no more can be written.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadData(f"{out} is there already; name a new folder, or remove it first")
    temporary = out.with_name(f".{out.name}.unfinished-{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(out)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise SetupError(
            f"{out} can't be written: {os.strerror(error.errno)}; free some space, or name a folder elsewhere"
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
