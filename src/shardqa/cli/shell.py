"""`shardqa completion`: what a shell needs to complete commands, options and names."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # not in its list of names


class Shell(StrEnum):
    bash = "bash"
    fish = "fish"
    zsh = "zsh"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that reads it.")]) -> None:
    """Print the shell's script that completes commands, options and names.

    Example: shardqa completion zsh > ~/.zfunc/_shardqa
    """
    print(get_completion_script(prog_name="shardqa", complete_var="_SHARDQA_COMPLETE", shell=shell))
