"""All commands of `shardqa-models`: help, documentation, and faults as one line or one JSON value."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text

from shardqa.http_schema import Problem
from shardqa_toolchain import cli

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "models.md"
NOTHING_THERE = {  # a command line of each command that can't succeed here, in an empty folder
    "train multitask": ["--recipe", "nowhere.toml", "--out", "out"],
    "prune": ["nowhere", "--out", "out", "--heads", "0.5"],
    "train qa": ["--data", "nowhere.json", "--start", "nowhere", "--out", "out"],
    "distil": ["--teacher", "nowhere", "--start", "nowhere", "--out", "out", "--data", "nowhere.json"],
    "average": ["a", "b", "--out", "out"],
    "adopt": ["nowhere", "--words", "nowhere", "--out", "out"],
    "candidates": ["nowhere", "--squad", "nowhere.json", "--out", "found.jsonl"],
    "calibrate": ["nowhere", "--candidates", "nowhere.jsonl"],
    "eval ask": ["nowhere.jsonl"], "eval retrieval": ["nowhere.jsonl"], "eval times": ["--redis", "127.0.0.1:1"],
    "calibrate-evidence": ["nowhere", "nowhere.jsonl"], "measure": ["nowhere", "nowhere.json"],
    "measure-evidence": ["nowhere.jsonl"],
    "export": ["nowhere", "--out", "out"], "quantize": ["nowhere", "--out", "out"],
    "dequantize": ["nowhere", "--out", "out"], "mix": ["nowhere.toml", "--out", "out"],
    "verify": ["nowhere", "nowhere"], "curve": ["nowhere"],
    "ladder": ["--checkpoint", "nowhere", "--reader", "nowhere"],
    "package": ["nowhere", "--out", "out"],
    "encoder": ["nowhere", "--out", "out"],
}  # fmt: skip


def leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
    else:
        for word, one in below.items():
            yield from leaves(one, f"{name} {word}".strip())


COMMANDS = dict(leaves(typer.main.get_command(cli.app)))


def test_every_command_is_listed_here() -> None:
    assert set(COMMANDS) == set(NOTHING_THERE)


def test_the_page_of_models_has_every_command() -> None:
    text = DOCUMENTATION.read_text()
    assert not [name for name in COMMANDS if f"| `shardqa-models {name}` |" not in text]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help_with_an_example(words: str) -> None:
    assert f"Example: shardqa-models {words}" in (COMMANDS[words].help or "")


@pytest.mark.parametrize("words", COMMANDS)
def test_no_help_has_brackets_that_its_screen_would_take_for_markup(words: str) -> None:
    command = COMMANDS[words]
    helps = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
    assert [text for text in helps if Text.from_markup(text).plain != text] == []


@pytest.mark.parametrize("words", NOTHING_THERE)
def test_with_json_stdout_is_one_json_value_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["shardqa-models", *words.split(), *NOTHING_THERE[words], "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    output = capsys.readouterr()
    problem = json.loads(output.out)
    assert ended.value.code
    if "code" in problem:
        assert Problem.model_validate(problem).detail
        assert problem["code"] != "usage", "the option is there"
    assert "Traceback" not in output.err
