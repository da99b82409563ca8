"""Each part of shardqa runs with its extra's libraries alone; without them it names the extra in one line."""

import platform
import subprocess
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKER = """
import importlib, pathlib, shardqa
root = pathlib.Path(shardqa.__file__).parent
files = [file for part in ("worker", "gears_functions") for file in (root / part).rglob("*.py")]
assert len(files) > 60, files
for file in files:
    if file.stem not in ("__main__", "torch_backend", "openvino_backend", "tflite_backend", "tensorflow_backend"):
        importlib.import_module(".".join(("shardqa", *file.relative_to(root).with_suffix("").parts)))
"""

# The packages of the tests have httpx2, so it is hidden here.
HIDING = "import sys; sys.modules['httpx2'] = None"


UNCALLED = {"huggingface-hub"}  # tokenizers asks for it where a model is to be fetched, which no part does
PYTHONS = ("3.11.0", "3.11.2", "3.12.0", "3.13.0", "3.14.0")  # 3.11.2 is Debian 12's, 3.13 Debian 13's


def of_python(version: str) -> dict[str, str]:
    """Returns what markers ask about a Python."""
    return {"python_version": version.rpartition(".")[0], "python_full_version": version}


def needs(parts: list[str], python: str = platform.python_version()) -> set[str]:
    """All distributions that parts with these extras run with, under a Python."""
    todo = [Requirement(line) for line in PROJECT["dependencies"]]
    todo += [Requirement(line) for part in parts for line in PROJECT["optional-dependencies"][part]]
    names, looked_at = set[str](), set[str]()
    while todo:
        requirement = todo.pop()
        name, extras = canonicalize_name(requirement.name), sorted(requirement.extras)
        if name == "shardqa":
            todo += [Requirement(line) for part in extras for line in PROJECT["optional-dependencies"][part]]
        elif name not in UNCALLED and f"{name}{extras}" not in looked_at:
            names.add(name)
            looked_at.add(f"{name}{extras}")
            lines = map(Requirement, metadata.distribution(name).requires or [])
            todo += [
                n
                for n in lines
                if n.marker is None or any(n.marker.evaluate({**of_python(python), "extra": e}) for e in (*extras, ""))
            ]
    return names


def installed(folder: Path, *parts: str) -> Path:
    """An interpreter that sees shardqa and those distributions only: the files are links to this environment's."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needs(list(parts)):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
            target = Path(str(distribution.locate_file(top)))
            if target.exists() and not (site / top).exists():
                (site / top).symlink_to(target)
    (site / "shardqa.pth").write_text(str(ROOT / "src"))
    return folder / "bin" / "python"


def run(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("bare") / "venv")


def test_a_shard_node_needs_the_worker_alone(tmp_path: Path) -> None:
    done = run(installed(tmp_path / "venv", "worker"), "-c", WORKER)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(("words", "extra"), [("shardqa.api", "api"), ("shardqa up", "all")])
def test_a_part_without_its_extra_names_it_in_one_line(bare: Path, tmp_path: Path, words: str, extra: str) -> None:
    done = subprocess.run([str(bare), "-m", *words.split()], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode in (1, 3)
    (line,) = done.stderr.splitlines()
    assert line.startswith("shardqa: ")
    assert f"run: pip install '.[{extra}]' in a checkout" in line


def test_the_command_line_needs_no_extra(bare: Path) -> None:
    assert run(bare, "-m", "shardqa", "--help").returncode == 0
    assert run(bare, "-m", "shardqa", "module-path").stdout.endswith("module/shardqa.so\n")


@pytest.mark.parametrize(("name", "extra"), [("pipeline", "worker"), ("Client", "client")])
def test_a_public_name_without_its_extra_names_it(bare: Path, name: str, extra: str) -> None:
    assert (
        f"run: pip install '.[{extra}]' in a checkout"
        in run(bare, "-c", f"{HIDING}; from shardqa import {name}").stderr
    )


def test_a_cluster_with_its_api_is_not_begun_by_the_worker_alone(tmp_path: Path) -> None:
    done = run(installed(tmp_path / "venv", "worker"), "-m", "shardqa", "up", "--data", str(tmp_path / "data"))
    assert (done.returncode, (tmp_path / "data").exists()) == (1, False)
    assert "uvicorn" in done.stderr


def test_the_bare_program_offers_what_it_can_do(bare: Path, tmp_path: Path) -> None:
    done = subprocess.run([str(bare), "-m", "shardqa"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "shardqa demo" not in done.stdout
    assert "pip install 'FILE.whl[all]'" in done.stdout


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ("client", "from shardqa import Client"),
        ("api", "from shardqa.api.app import create_app; from shardqa.config import Settings; create_app(Settings())"),
    ],
)
def test_an_extra_brings_what_its_part_imports(tmp_path: Path, extra: str, code: str) -> None:
    done = run(installed(tmp_path / "venv", extra), "-c", code)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_of_serving_has_what_serving_needs_under_each_python_and_no_more(python: str) -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    locked = {canonicalize_name(n.name) for n in pins if n.marker is None or n.marker.evaluate(of_python(python))}
    assert locked == needs(["all"], python) | {"setuptools", "wheel"}
    assert needs([], python) < locked


def test_the_lock_of_the_backends_has_each_backend_within_its_extras_bounds() -> None:
    lines = (ROOT / "requirements-backends.lock").read_text().splitlines()
    locked = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    for extra in ("tflite", "openvino", "tf"):
        (requirement,) = (Requirement(line) for line in PROJECT["optional-dependencies"][extra])
        name = "tensorflow-cpu" if requirement.name == "tensorflow" else requirement.name  # the build without CUDA
        assert locked[canonicalize_name(name)] in requirement.specifier, name
