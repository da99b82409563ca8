"""Packages of one module, as wheels in a folder."""

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

MODULE = """
import importlib.metadata
from dataclasses import dataclass

VERSION = importlib.metadata.version(__name__)

class Thing:
    pass

@dataclass
class Point:
    number: "ClassVarOf | int"
"""


def make_wheel(folder: Path, name: str, version: str, value: str) -> None:
    """A package of one module that has a VALUE."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VALUE = {value!r}\n{MODULE}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in (files | {f"{info}/RECORD": record + f"{info}/RECORD,,\n"}).items():
            wheel.writestr(path, text)


BACKEND = """
import os, sys
sys.path.insert(0, {tests!r})
from wheels import make_wheel

def build_wheel(folder, settings=None, metadata=None):
    refused = []
    for path, mode in (({private!r}, "r"), ({private!r} + ".new", "w")):
        try:
            open(path, mode)
        except PermissionError:
            refused.append(mode)
    from pathlib import Path
    make_wheel(Path(folder), {name!r}, "1.0", "built, refused " + " ".join(refused))
    return {name!r} + "-1.0-py3-none-any.whl"
"""


def make_source(folder: Path, name: str, private: Path) -> None:
    """A source package whose build tries to read a file that is none of its business, and to write beside it."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    own = Path(__file__).read_text()
    files = {
        "pyproject.toml": project,
        "wheels.py": own,
        "backend.py": BACKEND.format(tests=".", private=str(private), name=name),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
