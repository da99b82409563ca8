"""The telemetry of onnxruntime is off wherever it is loaded by way of this package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardqa.models import shipped

OPENED = f"onnxruntime.InferenceSession({str(shipped.folder() / 'model.onnx')!r}, providers=['CPUExecutionProvider'])"

LOADERS = {
    "the session of evaluations and bundles": "from shardqa.models import session\n"
    f"session.open_session(session.Path({str(shipped.folder())!r}), 1)",
    "the worker's backend": "from shardqa.worker.ai import backend\n"
    f"blob = open({str(shipped.folder() / 'model.onnx')!r}, 'rb').read()\n"
    "backend.OnnxModel(backend.File('ONNX', 'CPU', blob), 1)",
    "a program that imports the package first": f"import shardqa, onnxruntime\n{OPENED}",
}


def files_left(code: str, home: Path) -> list[str]:
    """Files that Python leaves in its home when it runs this, in an environment that says nothing of telemetry."""
    kept = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    quiet = {name: "" for name in kept if name.startswith("XDG_")}
    subprocess.run([sys.executable, "-c", code], check=True, env={**kept, **quiet, "HOME": str(home)})
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]


@pytest.mark.parametrize("code", LOADERS.values(), ids=LOADERS.keys())
def test_no_device_id_is_written(code: str, tmp_path: Path) -> None:
    assert files_left(code, tmp_path) == []


def test_the_environment_of_whoever_starts_us_does_not_turn_it_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = "import os, shardqa; assert os.environ['ORT_DISABLE_TELEMETRY'] == '1'"
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    environment = {**os.environ, "HOME": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
