"""`shardqa config show`: each value and where it comes from."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shardqa import cli
from shardqa.cli.faults import WrongSetting
from shardqa.config import Settings


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A file, and a variable that goes ahead of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shardqa.toml").write_text('k = 7\ncorpus = "of-the-file"\npassword = "file-secret"\n')
    return {"SHARDQA_CONFIG": "shardqa.toml", "SHARDQA_K": "9"}


def show(*words: str, env: dict[str, str]) -> dict[str, Any]:
    done = CliRunner().invoke(cli.app, ["config", "show", "--json", *words], env=env)
    assert done.exit_code == 0, done.output
    assert "secret" not in done.output
    return {one["name"]: (one["value"], one["origin"]) for one in json.loads(done.stdout)}


def test_every_setting_is_shown(env: dict[str, str]) -> None:
    assert set(Settings.model_fields) < set(show(env=env))


def test_each_value_names_where_it_comes_from(env: dict[str, str]) -> None:
    settings = show("--redis", "10.0.0.5:7000", env=env)
    assert settings["redis"] == ("10.0.0.5:7000", "option --redis")
    assert settings["k"] == (9, "environment SHARDQA_K")
    assert settings["corpus"] == ("of-the-file", "file shardqa.toml")
    assert settings["sure"] == (0.6, "default")
    assert settings["SHARDQA_CONFIG"] == ("shardqa.toml", "environment SHARDQA_CONFIG")


def test_variables_of_other_clients_count_where_nothing_else_does(env: dict[str, str]) -> None:
    others = {"REDIS_URL": "redis://10.0.0.9:7001", "REDISCLI_AUTH": "other-secret"}
    settings = show(env=others)
    assert settings["redis"] == ("10.0.0.9:7001", "environment REDIS_URL")
    assert settings["password"] == ("********", "environment REDISCLI_AUTH")
    settings = show(env={**others, **env, "SHARDQA_REDIS": "10.0.0.5:7000"})
    assert settings["redis"] == ("10.0.0.5:7000", "environment SHARDQA_REDIS")
    assert settings["password"] == ("********", "file shardqa.toml")


def test_a_value_that_does_not_fit_is_refused_by_the_name_of_its_variable(env: dict[str, str]) -> None:
    done = CliRunner().invoke(cli.app, ["ls"], env={**env, "SHARDQA_K": "500"})
    assert isinstance(done.exception, WrongSetting)
    assert "correct SHARDQA_K" in str(done.exception)


def test_the_file_to_begin_with_has_every_setting_and_changes_none(env: dict[str, str]) -> None:
    assert CliRunner().invoke(cli.app, ["config", "init", "new.toml"], env={}).exit_code == 0
    text = Path("new.toml").read_text()
    assert show(env={"SHARDQA_CONFIG": "new.toml"})["k"] == (5, "default")
    assert set(tomllib.loads(re.sub("(?m)^# (?=[a-z_]+ = )", "", text))) == set(Settings.model_fields)


def test_a_variable_is_not_taken_for_the_option_that_reads_it(env: dict[str, str]) -> None:
    settings = show(env={**env, "SHARDQA_CORPUS": "of-the-environment"})
    assert settings["corpus"] == ("of-the-environment", "environment SHARDQA_CORPUS")


def test_secrets_are_hidden_wherever_they_come_from(env: dict[str, str]) -> None:
    token = "SHARDQA_PAPERLESS_TOKEN"
    assert show(env={**env, token: "its-secret"})[token] == ("********", f"environment {token}")
    assert show(env=env)["password"] == ("********", "file shardqa.toml")
    assert show("--password", "other-secret", env=env)["password"] == ("********", "option --password")
    (Path("shardqa.toml")).write_text("")
    settings = show(env={**env, "SHARDQA_REDIS": "rediss://app:secret@10.0.0.5:7000"})
    assert settings["password"] == ("********", "the address, environment SHARDQA_REDIS")
    assert settings["user"] == ("app", "the address, environment SHARDQA_REDIS")
    assert settings["redis"] == ("10.0.0.5:7000", "environment SHARDQA_REDIS")


def test_people_see_a_table(env: dict[str, str]) -> None:
    done = CliRunner().invoke(cli.app, ["config", "show"], env=env)
    assert "k\t9\tenvironment SHARDQA_K" in done.stdout.splitlines()


def test_a_misspelt_setting_of_the_file_is_answered_with_the_nearest(env: dict[str, str]) -> None:
    Path("shardqa.toml").write_text('corpsu = "mine"\n')
    done = CliRunner().invoke(cli.app, ["config", "show"], env=env)
    assert "shardqa.toml sets 'corpsu', which is no setting; did you mean corpus?" in str(done.exception)


def test_a_misspelt_variable_costs_a_command_a_warning(env: dict[str, str]) -> None:
    done = CliRunner().invoke(cli.app, ["config", "show"], env={**env, "SHARDQA_CORPSU": "mine"})
    assert done.exit_code == 0
    assert "warning: the variable SHARDQA_CORPSU in the environment is no setting" in done.stderr
    assert "SHARDQA_CORPUS?" in done.stderr
