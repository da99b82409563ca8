"""The example documents and questions that come with the package."""

from pathlib import Path

import shardqa
from shardqa.errors import SetupError


def shipped_seeds() -> Path:
    """The folder with `documents/` and `questions.jsonl`. Raises SetupError where the package lacks it."""
    folder = Path(shardqa.__file__).parent / "seeds"
    if not (folder / "questions.jsonl").is_file():
        raise SetupError(
            f"{folder} is not there, which the package brings; install it whole, or name files of your own"
        )
    return folder
