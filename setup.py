"""Builds the Redis module (its Makefile) as part of the wheel; the rest is in pyproject.toml and setup.cfg."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.errors import ExecError

MODULE = "src/shardqa/module"  # through the link that a checkout has; an sdist has the folder itself
NEEDS = (
    "the Redis module is written in C and built while installing: on Debian 'apt-get install make gcc libc6-dev', "
    "or install a wheel of this platform, which has it built"
)


class BuildModule(Command):
    description = "build module/shardqa.so with make"
    user_options: ClassVar[list[tuple[str, str, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        for tool in ("make", os.environ.get("CC") or "cc"):
            if shutil.which(tool) is None:
                raise ExecError(f"{tool} is missing; {NEEDS}")
        done = subprocess.run(["make", "-s", "-C", MODULE], check=False)
        if done.returncode:
            raise ExecError(f"make -C {MODULE} ended with {done.returncode}, see above; {NEEDS}")


class Build(build):
    sub_commands: ClassVar = [("build_module", None), *build.sub_commands]


class PlatformWheel(bdist_wheel):
    """The C module knows nothing of Python, so one wheel a platform serves every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]

    def write_wheelfile(self, wheelfile_base: str, generator: str = "shardqa") -> None:
        super().write_wheelfile(wheelfile_base, generator)
        folder = Path(wheelfile_base) / "sboms"
        folder.mkdir()
        (folder / "shardqa.cdx.json").write_text(json.dumps(self.bill(), indent=1) + "\n")

    def bill(self) -> dict[str, Any]:
        """The wheel's bill of materials (PEP 770), CycloneDX 1.6: what it holds that is no code of its own."""
        parts = [
            {
                "type": "machine-learning-model",
                "name": model.parent.name,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(model.read_bytes()).hexdigest()}],
            }
            for model in sorted(Path("src/shardqa/models").glob("*/model.onnx"))
        ]
        parts.append({"type": "data", "name": "seeds", "licenses": [{"license": {"id": "CC0-1.0"}}]})
        version = self.distribution.get_version()
        whole = {"type": "application", "name": "shardqa", "version": version, "purl": f"pkg:pypi/shardqa@{version}"}
        metadata = {"component": {**whole, "licenses": [{"expression": "Apache-2.0 AND CC0-1.0"}]}}
        return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": metadata, "components": parts}


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


COMMANDS = {"build": Build, "build_module": BuildModule, "bdist_wheel": PlatformWheel}
setup(distclass=BinaryDistribution, cmdclass=COMMANDS)
