"""The libraries of a bundle: which versions, and where they come from."""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from shardqa.errors import BadData, SetupError
from shardqa_toolchain.packaging.target import Target, is_this_machine

# What a reader imports. What these ask for besides (protobuf, huggingface-hub ...) reading does not need.
LIBRARIES = ("numpy", "onnxruntime", "tokenizers")

LEAST_GLIBC = (2, 28)  # that onnxruntime's wheels need; only to say so


def pins(lock: Path | None = None, names: Sequence[str] = LIBRARIES) -> dict[str, str]:
    """The versions that a lock file names, else those installed here.

    Raises BadData when the lock file lacks one, OSError as open() does, SetupError for one that is not installed.
    """
    if lock is None:
        return {name: _installed_version(name) for name in names}
    versions = dict(re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    missing = [name for name in names if name not in versions]
    if missing:
        raise BadData(f"{lock} has no line {missing[0]}==VERSION; add it, or name another --lock")
    return {name: versions[name] for name in names}


def gather(target: Target, versions: Mapping[str, str], out: Path, wheels: Path | None = None) -> str:
    """Lay the libraries out in a folder as they would be installed, and say where they came from.

    Those installed here are copied when they are of these versions and run on the target; else pip fetches wheels,
    from the folder ``wheels`` alone where it is given. Raises SetupError when there is none that runs there.
    """
    if (
        wheels is None
        and is_this_machine(target)
        and all(_fits(name, version, target) for name, version in versions.items())
    ):
        for name in versions:
            _copy(metadata.distribution(name), out)
        return "the libraries installed here"
    _fetch(target, versions, out, wheels)
    return f"wheels of {wheels}" if wheels else "wheels of the package index"


def _installed_version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise SetupError(f"{name} is not installed; run: pip install . in a checkout of shardqa") from None


def _fits(name: str, version: str, target: Target) -> bool:
    """Whether the installed library is of this version and came from a wheel that runs on the target."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    wheel = distribution.read_text("WHEEL") or ""
    platforms = {tag.rpartition("-")[2] for line in re.findall(r"^Tag: (\S+)", wheel, re.MULTILINE) for tag in [line]}
    return distribution.version == version and bool(platforms & set(target.platforms()))


def _copy(installed: metadata.Distribution, out: Path) -> None:
    for file in installed.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            path = out / file
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), path)


def _fetch(target: Target, versions: Mapping[str, str], out: Path, wheels: Path | None) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-compile", "--only-binary", ":all:", "--target", str(out), "--implementation", "cp"]
    command += ["--python-version", target.python]
    command += [word for name in target.platforms() for word in ("--platform", name)]
    if wheels is not None:
        command += ["--no-index", "--find-links", str(wheels)]
    command += [f"{name}=={version}" for name, version in versions.items()]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SetupError(_fault(target, process.stderr, wheels))


def _fault(target: Target, errors: str, wheels: Path | None) -> str:
    if "No space left" in errors:
        return "the disk is full while unpacking wheels; free some space, or name another folder"
    if "No module named pip" in errors:
        return f"{sys.executable} has no pip, which fetches the wheels; run: {sys.executable} -m ensurepip"
    lines = [line for line in errors.splitlines() if line.startswith("ERROR")] or errors.splitlines()[-1:]
    message = f"pip found no wheels for {target}: {lines[-1] if lines else 'it said nothing'}"
    if target.glibc < LEAST_GLIBC:
        return f"{message}; Lambda's Python {target.python} is too old a system for them, choose --python 3.12 or newer"
    return f"{message}; look whether {wheels or 'the package index'} has them"
