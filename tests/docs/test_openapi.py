"""The API is described in docs/openapi.json, so that a change of it shows in a commit."""

import json
from pathlib import Path

from shardqa.api.app import create_app
from shardqa.config import Settings

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"


def description() -> str:
    return json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def test_the_description_in_the_repository_is_the_apis() -> None:
    assert FILE.read_text() == description(), "after a look at the change: .venv/bin/python -m tests.docs.test_openapi"


if __name__ == "__main__":
    FILE.write_text(description())
