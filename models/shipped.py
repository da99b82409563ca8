"""The reader and the encoder that come with shardqa: finds their folders and checks their files."""

import hashlib
import json
from pathlib import Path

from shardqa.errors import BadModel
from shardqa.keys import SHIPPED_READER

NAME = SHIPPED_READER  # the reader's name in keys, in its card and in what the API reports
FOLDER = "reader-v4-int8"
ENCODER_NAME = "encoder-v2-int8"  # the name of the encoder, which gives passages their vectors
CHECKSUMS_FILE = "checksums.json"  # SHA-256 (hex) of each other file of a reader's folder, by name
CARD_FILE = "card.json"  # what is known about a model (`cards.py`)

# Compared with a checkpoint's git-lfs pointer or a copy cut short, a file differs long before it fails to load.
_CHUNK_BYTES = 1 << 20


def folder() -> Path:
    """The shipped reader's folder."""
    return Path(__file__).resolve().parent / FOLDER


def encoder_folder() -> Path:
    return folder().parent / ENCODER_NAME


def checked_folder(path: Path | None = None) -> Path:
    """Returns the folder (the shipped one unless given) once every file in it is what ``checksums.json`` says.

    Raises BadModel that names the first file missing or different.
    """
    path = path or folder()
    try:
        digests = json.loads((path / CHECKSUMS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadModel(f"{path / CHECKSUMS_FILE} can't be read: {error}; restore the folder") from None
    for name, digest in sorted(digests.items()):
        try:
            actual = sha256(path / name)
        except OSError as error:
            raise BadModel(f"{path / name} can't be read: {error}; restore the folder") from None
        if actual != digest:
            raise BadModel(f"{path / name} has SHA-256 {actual}, {CHECKSUMS_FILE} says {digest}; restore the folder")
    return path


def write_checksums(path: Path) -> None:
    """Writes ``checksums.json`` for the files of a reader's folder, the cards aside: people may add to them."""
    aside = (CHECKSUMS_FILE, CARD_FILE)
    files = [
        file for file in sorted(path.iterdir()) if file.suffix in (".onnx", ".pt", ".json") and file.name not in aside
    ]
    sums = {file.name: sha256(file) for file in files}
    (path / CHECKSUMS_FILE).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """The SHA-256 of a file, as hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
