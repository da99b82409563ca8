"""A reader as a bundle: a zip for AWS Lambda, or a folder for Cloud Functions and Cloud Run."""

import errno
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models.check_reader import check_reader
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.packaging import archive, bytecode, contents, wheels
from shardqa_toolchain.packaging.framework import PINS
from shardqa_toolchain.packaging.target import Target
from shardqa_toolchain.windows import WINDOW_TOKENS

MAX_UNZIPPED_BYTES = 262_144_000  # Lambda's quota for a function's files, its layers included

MAX_UPLOAD_BYTES = 50_000_000  # a bigger zip can't be uploaded directly; it goes by way of S3


@dataclass(frozen=True, slots=True)
class Bundle:
    path: Path
    target: Target
    zipped: int  # bytes of the zip; 0 for a folder
    unzipped: int  # bytes of all files
    parts: dict[str, int]  # bytes of each library, of the model and of shardqa, unzipped, the largest first
    libraries: dict[str, str]  # their versions
    source: str  # where they came from
    compiled: bool  # whether the modules are compiled, without which a cold start takes longer


def lambda_zip(
    reader: Path,
    out: Path,
    target: Target,
    versions: Mapping[str, str],
    wheel_folder: Path | None = None,
    python: str | None = None,
) -> Bundle:
    """Write a zip for Lambda's Python runtime, in place of one that is there, whole or not at all.

    With ``python``, an interpreter of the target's version, the modules are compiled.
    Raises BadModel for a folder that is no reader and for a bundle over Lambda's limit, BadData for a place that is no
    file's, SetupError when libraries can't be had or the disk is full.
    """
    if out.is_dir():
        raise BadData(f"{out} is a folder; name a file, such as {out / 'bundle.zip'}")
    check_reader(reader, WINDOW_TOKENS)
    with _room_beside(out) as root:
        source = wheels.gather(target, versions, root, wheel_folder)
        contents.thin(root)
        contents.add_code("lambda_function.py", root)
        if python is not None:
            bytecode.compile_all(python, root)
        contents.add_model(reader, root)
        parts = contents.sizes(root)
        _check_limit(parts)
        size = archive.write(contents.files(root), out)
    return Bundle(out, target, size, sum(parts.values()), parts, dict(versions), source, python is not None)


def functions_folder(reader: Path, out: Path, target: Target, versions: Mapping[str, str]) -> Bundle:
    """Write a folder for Cloud Functions and Cloud Run, whole or not at all; the libraries are installed there.

    Raises BadModel for a folder that is no reader, BadData when there is something at ``out``, SetupError when the
    disk is full.
    """
    check_reader(reader, WINDOW_TOKENS)
    with written_atomically(out) as root:
        contents.add_code("main.py", root)
        contents.add_model(reader, root)
        pins = sorted({**PINS, **versions}.items(), key=lambda item: item[0].lower())
        _write(root / "requirements.txt", "".join(f"{name}=={version}\n" for name, version in pins))
        _write(root / "Procfile", PROCFILE)
        _write(root / "Dockerfile", DOCKERFILE.format(python=target.python))
        parts = contents.sizes(root)
    return Bundle(out, target, 0, sum(parts.values()), parts, dict(versions), "requirements.txt", False)


PROCFILE = "web: functions-framework --target=answer --source=main.py\n"

DOCKERFILE = """\
FROM python:{python}-slim
WORKDIR /srv
COPY requirements.txt .
RUN pip install --no-cache-dir --no-deps -r requirements.txt
COPY . .
RUN useradd --system answerer
USER answerer
ENV PORT=8080
CMD ["functions-framework", "--target=answer", "--source=main.py"]
"""


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _check_limit(parts: Mapping[str, int]) -> None:
    total = sum(parts.values())
    if total > MAX_UNZIPPED_BYTES:
        biggest = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in list(parts.items())[:4])
        raise BadModel(
            f"the bundle has {total / 1e6:.1f} MB unzipped ({biggest}), Lambda takes "
            f"{MAX_UNZIPPED_BYTES / 1e6:.1f} MB; package a smaller model (shardqa-models quantize, prune or distil)"
        )


@contextmanager
def _room_beside(out: Path) -> Iterator[Path]:
    """Yields an empty folder on the same disk, removed afterwards; raises SetupError when that disk fills up."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            yield Path(folder)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SetupError(f"the disk is full while writing {out}; free some space, or name another folder") from None
