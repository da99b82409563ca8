"""The machine that a bundle is made for, and the versions of its libraries."""

import platform
import sys
import zipfile
from pathlib import Path

import pytest

from shardqa.errors import BadData, SetupError
from shardqa_toolchain.packaging import wheels
from shardqa_toolchain.packaging.target import Target, interpreter

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

LIKE_HERE = Target(HERE, (2, 99), platform.machine())


def write_wheel(folder: Path, name: str, version: str, tag: str) -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-{tag}.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def test_platforms_are_those_of_the_runtimes_c_library_and_machine_newest_first() -> None:
    assert "manylinux_2_28_x86_64" in Target.of("3.12", "x86_64").platforms()
    assert "manylinux_2_28_x86_64" not in Target.of("3.11", "x86_64").platforms()
    platforms = Target.of("3.13", "aarch64").platforms()
    assert platforms[0] == "manylinux_2_34_aarch64"
    assert "manylinux2014_aarch64" in platforms
    assert not any("x86_64" in name for name in platforms)


@pytest.mark.parametrize(
    ("python", "machine", "glibc"),
    [("2.7", "x86_64", None), ("3.12", "riscv64", None), ("3.12", "x86_64", "3"), ("3.12", "x86_64", "2.x")],
)
def test_a_target_that_there_is_not_is_refused(python: str, machine: str, glibc: str | None) -> None:
    with pytest.raises(SetupError):
        Target.of(python, machine, glibc)


def test_an_interpreter_must_be_of_the_targets_version_and_machine(tmp_path: Path) -> None:
    assert interpreter(LIKE_HERE) == sys.executable
    assert interpreter(Target(HERE, (2, 34), "other")) is None
    with pytest.raises(SetupError, match="--interpreter"):
        interpreter(Target("2.7", (2, 34), platform.machine()), sys.executable)
    with pytest.raises(SetupError, match="nothing"):
        interpreter(LIKE_HERE, str(tmp_path / "python"))


def test_versions_come_from_the_lock_file_or_from_what_is_installed(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("# all\nnumpy==2.0.1\nonnxruntime==1.2\ntokenizers==0.1\n")
    assert wheels.pins(lock) == {"numpy": "2.0.1", "onnxruntime": "1.2", "tokenizers": "0.1"}
    lock.write_text("numpy==2.0.1\n")
    with pytest.raises(BadData, match="onnxruntime"):
        wheels.pins(lock)
    with pytest.raises(SetupError, match="no-such-library"):
        wheels.pins(None, ["no-such-library"])


def test_installed_libraries_are_copied_where_they_run_on_the_target(tmp_path: Path) -> None:
    versions = wheels.pins(None, ["tokenizers"])
    assert wheels.gather(LIKE_HERE, versions, tmp_path) == "the libraries installed here"
    assert (tmp_path / "tokenizers" / "__init__.py").is_file()


def test_wheels_of_a_folder_are_unpacked_or_refused_with_the_way_out(tmp_path: Path) -> None:
    for tag in ("cp311-cp311", "cp312-cp312"):
        write_wheel(tmp_path / "wheels", "tiny", "1.0", f"{tag}-manylinux_2_28_x86_64")
    wheels.gather(Target.of("3.12", "x86_64"), {"tiny": "1.0"}, tmp_path / "out", tmp_path / "wheels")
    assert (tmp_path / "out" / "tiny" / "__init__.py").is_file()
    with pytest.raises(SetupError, match=r"Python 3.11, glibc 2.26.*--python 3.12"):
        wheels.gather(Target.of("3.11", "x86_64"), {"tiny": "1.0"}, tmp_path / "old", tmp_path / "wheels")


def test_a_full_disk_under_pip_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho 'ERROR: [Errno 28] No space left on device' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(SetupError, match="disk is full"):
        wheels.gather(Target.of("3.12", "x86_64"), {"tiny": "1.0"}, tmp_path / "out", tmp_path)
