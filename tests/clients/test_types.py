"""The TypeScript compiler checks shardqa.d.ts: what a program may write with it, and what is an error in one."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPESCRIPT = "typescript@5.9.3"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compiler() -> str:
    """The path of tsc, installed once inside our environment."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are missing (.ci/install-packages does not bring them)")
    folder = Path(sys.prefix) / "typescript"
    tsc = folder / "node_modules" / "typescript" / "bin" / "tsc"
    if not tsc.exists():
        words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), TYPESCRIPT]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{TYPESCRIPT} can't be installed: {done.stderr.strip()[-200:]}")
    return str(tsc)


@pytest.mark.timeout(300)
def test_a_program_in_typescript_is_checked_by_the_types(compiler: str, tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("use_of_types.mts"), tmp_path)
    package = tmp_path / "node_modules" / "shardqa"
    package.mkdir(parents=True)
    for name in ("package.json", "shardqa.js", "shardqa.d.ts"):
        shutil.copy(ROOT / "api" / "page" / name, package)
    options = {
        "strict": True, "noEmit": True, "target": "es2022", "module": "nodenext", "lib": ["es2022", "dom"],
        "types": [], "exactOptionalPropertyTypes": False,
    }  # fmt: skip
    config = {"compilerOptions": options, "files": ["use_of_types.mts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    done = subprocess.run(["node", compiler, "-p", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
