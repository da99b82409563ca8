"""Models kept under their content's address, with names that point to them.

    <store>/models/<address>/    the model's files, its card, and files.json: SHA-256 (hex) of each file
    <store>/names/<name>         the address, as text

Whoever changes the store holds its lock; a model is there whole or not at all, as a name is.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.cards import MODEL_FILES, Card, address

FILES_FILE = "files.json"

NAME_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A name is a part of Redis keys and a file's name."""

PREFIX_FORM = re.compile(r"[0-9a-f]{4,64}")
"""The beginning of an address."""

SHORT = 12
"""Digits of an address that are shown."""

KINDS = (
    ("reader", {"model.onnx", "tokenizer.json", "scoring.json"}),
    ("onnx", {"model.onnx"}),
    ("checkpoint", {"model.safetensors"}),
    ("torchscript", {"model.pt"}),
)
"""What a folder is, by the files that it has at least."""


DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the store, or the shipped one."""

    names: tuple[str, ...]
    """Sorted; none when adding ended between model and name."""
    address: str
    folder: Path
    kind: str
    bytes: int
    """Of the files that make the address."""
    card: Card | None
    shipped: bool = False

    @property
    def f1(self) -> str:
        """The card's first F1 with its set; empty where there is none."""
        score = next((one for one in self.card.scores if one.metric == "F1"), None) if self.card else None
        return f"{score.value:.2f} ({score.set})" if score else ""


def default_root() -> Path:
    """``$XDG_DATA_HOME/shardqa/models``, else ``~/.local/share/shardqa/models``."""
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "shardqa" / "models"


class Store:
    """A folder of models; it need not exist before the first is added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._models, self._names = root / "models", root / "names"

    def entries(self) -> list[Entry]:
        """The shipped reader, then the others by name; their content is not checked, which would read all of it.

        One whose list of files or card can't be read is of the kind DAMAGED.
        """
        names = self._all_names()
        addresses = [path.name for path in _listed(self._models) if len(path.name) == 64]
        found = [self._listed(one, tuple(sorted(n for n, a in names.items() if a == one))) for one in addresses]
        return [shipped_entry(), *sorted(found, key=lambda one: (one.names, one.address))]

    def find(self, reference: str) -> Entry:
        """The model of a name, an address or its first digits, or a folder; its content has been checked.

        Raises BadModel when there is none, more than one, or it is not what was added.
        """
        if reference == shipped.NAME:
            shipped.checked_folder()
            return shipped_entry()
        names = self._all_names()
        if reference not in names and ("/" in reference or Path(reference).is_dir()):
            return folder_entry(Path(reference))
        content = names.get(reference) or self._address_of(reference)
        found = self._entry(content, tuple(sorted(name for name, one in names.items() if one == content)))
        _check(found)
        return found

    def add(self, folder: Path, name: str | None = None) -> Entry:
        """Copy a model's folder into the store under a name: its card's or its own, unless given.

        What is there already is not copied again, but the card becomes the folder's. Raises BadModel for a folder
        that is no model, BadData for a name that is none or another model's, SetupError when the disk is full or the
        store can't be written.
        """
        card = Card.find(folder)
        name = name or (card.name if card else folder.resolve().name)
        check_name(name)
        content = address(folder)
        with self._locked():
            taken = self._all_names().get(name, content)
            if taken != content:
                raise BadData(f"{name!r} is the name of {taken[:SHORT]}; choose another --name, or rm that one first")
            self._keep(folder, content)
            if card is not None:
                card.save(self._models / content)
            self._point(name, content)
        return self.find(name)

    def remove(self, reference: str) -> list[str]:
        """Take a name away, or a model without a name by its address, and return the names that keep the model.

        The model goes with its last name. Raises BadModel for what there is not, BadData for the shipped reader and
        for an address that has names.
        """
        if reference == shipped.NAME and reference not in self._all_names():
            raise BadData(f"{reference} comes with shardqa; name a model of the store")
        with self._locked():
            names = self._all_names()
            content = names.get(reference) or self._address_of(reference)
            others = sorted(name for name, one in names.items() if one == content and name != reference)
            if reference not in names and others:
                raise BadData(f"{content[:SHORT]} has the names {', '.join(others)}; remove these")
            (self._names / reference).unlink(missing_ok=True)
            if not others:
                self._drop(content)
        return others

    def _all_names(self) -> dict[str, str]:
        """Addresses by name."""
        return {path.name: path.read_text().strip() for path in _listed(self._names) if path.name[0] != "."}

    def _address_of(self, prefix: str) -> str:
        addresses = [path.name for path in _listed(self._models)]
        matches = [one for one in addresses if one.startswith(prefix)] if PREFIX_FORM.fullmatch(prefix) else []
        if len(matches) > 1:
            listed = ", ".join(one[: max(SHORT, len(prefix) + 4)] for one in matches)
            raise BadModel(f"{prefix!r} is the beginning of {listed}; give more digits")
        if not matches:
            known = ", ".join([shipped.NAME, *sorted(self._all_names())])
            raise BadModel(f"there is no model {prefix!r} in {self.root}; known are {known}")
        return matches[0]

    def _entry(self, content: str, names: tuple[str, ...]) -> Entry:
        folder = self._models / content
        digests = _files_of(folder)
        return Entry(names, content, folder, kind_of(set(digests)), _bytes(folder, digests), Card.find(folder))

    def _listed(self, content: str, names: tuple[str, ...]) -> Entry:
        try:
            return self._entry(content, names)
        except BadModel:
            return Entry(names, content, self._models / content, DAMAGED, 0, None)

    def _keep(self, folder: Path, content: str) -> None:
        """Copy a model unless it is there and whole."""
        place = self._models / content
        if place.exists():
            try:
                _check(self._entry(content, ()))
            except BadModel:
                self._drop(content)
            else:
                return
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=self._models) as unfinished:
            copy = Path(unfinished) / content
            _copy(folder, copy)
            if address(copy) != content:
                raise BadModel(f"{folder} changed while it was copied; add it again")
            copy.rename(place)

    def _point(self, name: str, content: str) -> None:
        unfinished = self._names / f".{name}.unfinished"
        try:
            unfinished.write_text(content + "\n")
            unfinished.replace(self._names / name)
        finally:
            unfinished.unlink(missing_ok=True)

    def _drop(self, content: str) -> None:
        """Out of the way at once, then gone."""
        with tempfile.TemporaryDirectory(prefix=".removed-", dir=self._models) as removed:
            (self._models / content).rename(Path(removed) / content)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            for folder in (self._models, self._names):
                folder.mkdir(parents=True, exist_ok=True)
            with (self.root / ".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                for left in self._models.glob(".*"):  # by a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
                yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise SetupError(f"the disk of {self.root} is full; free some space, or name another --store") from None
            raise SetupError(f"the store {self.root} can't be changed: {error}; name another --store") from None


def shipped_entry() -> Entry:
    """The reader that comes with shardqa."""
    found = folder_entry(shipped.folder())
    return Entry((shipped.NAME,), found.address, found.folder, found.kind, found.bytes, found.card, shipped=True)


def folder_entry(folder: Path) -> Entry:
    """A model outside the store; raises BadModel for a folder that is none."""
    content = address(folder)
    names = {name for name in MODEL_FILES if (folder / name).is_file()}
    return Entry((), content, folder, kind_of(names), _bytes(folder, names), Card.find(folder))


def kind_of(names: set[str]) -> str:
    """Returns the kind of model that files of these names make."""
    return next((kind for kind, needed in KINDS if needed <= names), "unknown")


def _check(entry: Entry) -> None:
    """Raise BadModel, which names the file, unless every file is what was added."""
    digests = _files_of(entry.folder)
    if _address(digests) != entry.address:
        raise BadModel(f"{entry.folder / FILES_FILE} is damaged; rm the model and add it again")
    for name, expected in digests.items():
        try:
            actual = shipped.sha256(entry.folder / name)
        except OSError as error:
            raise BadModel(f"{entry.folder / name} can't be read: {error}; add the model again") from None
        if actual != expected:
            raise BadModel(f"{entry.folder / name} is damaged: SHA-256 {actual}, not {expected}; add the model again")


def _address(digests: dict[str, str]) -> str:
    return hashlib.sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode()).hexdigest()


def _files_of(folder: Path) -> dict[str, str]:
    try:
        digests = json.loads((folder / FILES_FILE).read_bytes())
        return {str(name): str(digest) for name, digest in digests.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise BadModel(f"{folder / FILES_FILE} can't be read: {error}; rm the model and add it again") from None


def _copy(folder: Path, copy: Path) -> None:
    """The files that make the address, and the checksums that other commands look at."""
    copy.mkdir()
    files = {name: folder / name for name in MODEL_FILES if (folder / name).is_file()}
    for name, path in files.items():
        shutil.copyfile(path, copy / name)
    (copy / FILES_FILE).write_text(json.dumps({name: shipped.sha256(copy / name) for name in files}, indent=2) + "\n")
    shipped.write_checksums(copy)


def _bytes(folder: Path, names: set[str] | dict[str, str]) -> int:
    return sum((folder / name).stat().st_size for name in names if (folder / name).exists())


def check_name(name: str, option: str = "--name") -> None:
    """Raise BadData, which names the option to give another by, unless a model other than the shipped may have it."""
    if not NAME_FORM.fullmatch(name) or re.fullmatch(r"[0-9a-f]{12,}", name):
        raise BadData(f"{name!r} is no name: letters, digits, '.', '_' and '-', at most 64, are; give one by {option}")
    if name == shipped.NAME:
        raise BadData(f"{name} is the shipped reader's name; choose another {option}")


def _listed(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name[0] != ".") if folder.is_dir() else []
