"""Folders that are there whole or not at all."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardqa.errors import BadData, SetupError


@contextmanager
def written_whole(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` to write into; when all went well it takes ``out``'s name, else it goes.

    Raises BadData when ``out`` is there already with something in it, SetupError when the disk is full.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadData(f"{out} is there already; name a folder that is not, or remove it")
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        if out.exists():
            out.rmdir()
        unfinished.rename(out)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SetupError(f"the disk is full while writing {out}; free some space, or name another folder") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
