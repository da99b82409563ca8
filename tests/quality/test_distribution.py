"""Distributions are whole: an sdist that builds, a wheel that works where there is no checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: str, cwd: Path, code: int = 0, **env: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SHARDQA_")}
    process = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == code, process.stdout[-2000:] + process.stderr[-2000:]
    return process.stdout + process.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this checkout alone, with a module that an older source was built to."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and os.path.lexists(ROOT / name)]
    subprocess.run(["cp", "-a", "--parents", "-t", str(folder), *names], cwd=ROOT, check=True)
    (folder / "module" / "shardqa.so").write_text("stale")
    return folder


@pytest.fixture(scope="module")
def sdist(checkout: Path) -> Path:
    run("-m", "build", "--no-isolation", "--sdist", ".", cwd=checkout)
    (found,) = (checkout / "dist").glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def source(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the sdist, unpacked as pip would."""
    run("-m", "build", "--no-isolation", "--wheel", ".", cwd=source)
    (wheel,) = (source / "dist").glob("*.whl")
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_an_sdist_holds_the_modules_sources_and_nothing_that_was_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("src/shardqa/module/src/module.c") for name in names)
    assert any(name.endswith("src/shardqa/module/Makefile") for name in names)
    assert [name for name in names if name.endswith((".so", ".o", ".pyc"))] == []


def test_a_wheel_from_an_sdist_holds_what_is_needed_to_run(installed: Path) -> None:
    package = installed / "shardqa"
    for name in ("module/shardqa.so", "seeds/questions.jsonl", "seeds/documents/lake-ysolde.md", "api/page/index.html"):
        assert (package / name).is_file(), name
    assert (package / "module/shardqa.so").read_bytes()[:4] == b"\x7fELF"
    assert list(package.rglob("*.c")) == []


def test_neither_sdist_nor_wheel_holds_the_toolchain(sdist: Path, installed: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    names += [path.relative_to(installed).as_posix() for path in installed.rglob("*")]
    assert [name for name in names if "toolchain" in name] == []


def test_a_wheel_from_an_sdist_is_typed(installed: Path) -> None:
    assert (installed / "shardqa" / "py.typed").is_file()


def test_a_demo_of_a_folder_that_is_not_there_starts_no_node(installed: Path, tmp_path: Path) -> None:
    words = ("-m", "shardqa.cli", "demo", "nowhere", "--data", str(tmp_path / "data"))
    said = run(*words, cwd=tmp_path, code=2, PYTHONPATH=str(installed))
    assert "nowhere is neither a file nor a folder" in said
    assert "starting" not in said
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("tools", "missing"), [([], "make"), (["make"], "cc")])
def test_without_a_compiler_the_build_says_what_is_missing(
    source: Path, tmp_path: Path, tools: list[str], missing: str
) -> None:
    for tool in tools:
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    said = run("setup.py", "build_module", cwd=source, code=1, PATH=str(tmp_path), CC="")
    assert f"error: {missing} is missing; the Redis module is written in C" in said
    assert "Traceback" not in said
