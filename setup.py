"""Builds the Redis module (module/Makefile) as part of the wheel; the rest is in pyproject.toml and setup.cfg."""

import subprocess
from typing import ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build


class BuildModule(Command):
    description = "build module/shardqa.so with make"
    user_options: ClassVar[list[tuple[str, str, str]]] = []

    def initialize_options(self) -> None: ...

    def finalize_options(self) -> None: ...

    def run(self) -> None:
        subprocess.run(["make", "-s", "-C", "module"], check=True)


class Build(build):
    sub_commands: ClassVar = [("build_module", None), *build.sub_commands]


class PlatformWheel(bdist_wheel):
    """The C module knows nothing of Python, so one wheel a platform serves every Python 3."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


COMMANDS = {"build": Build, "build_module": BuildModule, "bdist_wheel": PlatformWheel}
setup(distclass=BinaryDistribution, cmdclass=COMMANDS)
