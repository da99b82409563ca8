"""A zip whose bytes depend on nothing but the names and contents of its files, written whole or not at all."""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can name; every file has it

MODE = 0o755  # readable and executable for all, whatever the mask of the user who packs


LEVEL = 9  # a little smaller than the usual 6, which decides here whether the zip may be uploaded directly


def write(files: Mapping[str, Path], out: Path) -> int:
    """Write a zip of files by name and return its bytes; raises OSError, and then leaves nothing behind."""
    temporary = out.with_name(f".{out.name}.unfinished")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            for name, path in sorted(files.items()):
                _add(archive, name, path)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return out.stat().st_size


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix, so that the mode counts
    entry.external_attr = MODE << 16
    entry.file_size = path.stat().st_size
    with path.open("rb") as source, archive.open(entry, "w") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)
