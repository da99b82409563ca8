"""The doctor names each thing of a node that is not as it should be, with a remedy."""

from typing import Any, cast

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from shardqa.cluster import doctor
from shardqa.topology import Node

NODE = Node("", "127.0.0.1", 7000, "master", None, (), frozenset(), frozenset(), connected=True)


class InfoReplies:
    """A node by what it answers: sections of INFO, values of CONFIG GET."""

    def __init__(self, config: dict[str, str] | None = None, **sections: dict[str, Any]) -> None:
        self.config, self.sections = config, sections

    def info(self, section: str) -> dict[str, Any]:
        return self.sections[section]

    def config_get(self, name: str) -> dict[str, str]:
        if self.config is None:
            raise NoPermissionError("NOPERM this user has no permissions to run the 'config|get' command")
        return self.config


def client(config: dict[str, str] | None = None, **sections: dict[str, Any]) -> Redis:
    return cast(Redis, InfoReplies(config, **sections))


WELL = {"shardqa_worker_state": "ready", "shardqa_worker_restarts": 0, "shardqa_sandbox": "no_new_privs landlock7"}
AOF = {"aof_enabled": 1, "aof_last_write_status": "ok"}


def test_of_a_node_that_is_well_nothing_is_bad() -> None:
    told = client({"aof-use-rdb-preamble": "yes"}, shardqa=WELL, persistence=AOF)
    found = [*doctor._worker(NODE, told), *doctor._persistence(NODE, told)]
    assert {one.verdict for one in found} == {"ok"}


@pytest.mark.parametrize(
    ("policy", "limit", "verdict"),
    [
        ("allkeys-lru", 1, "bad"),
        ("allkeys-random", 1, "bad"),
        ("allkeys-lru", 0, "ok"),
        ("volatile-lru", 1, "ok"),
        ("noeviction", 1, "ok"),
    ],
)
def test_a_policy_that_evicts_documents_is_bad_once_memory_is_bounded(policy: str, limit: int, verdict: str) -> None:
    (found,) = doctor._memory(NODE, client(memory={"maxmemory_policy": policy, "maxmemory": limit}))
    assert found.verdict == verdict
    assert ("volatile-lru" in found.remedy) == (verdict == "bad")


@pytest.mark.parametrize(
    ("info", "verdict", "remedy"),
    [
        ({"aof_enabled": 0}, "warning", "CONFIG SET appendonly yes"),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, "bad", "free disk space"),
    ],
)
def test_an_append_only_file_that_is_off_or_fails_is_told(info: dict[str, Any], verdict: str, remedy: str) -> None:
    (found,) = doctor._persistence(NODE, client(persistence=info))
    assert (found.verdict, remedy in found.remedy) == (verdict, True)


def test_what_a_user_may_not_see_is_unknown_and_not_well() -> None:
    (found,) = doctor._persistence(NODE, client(None, persistence=AOF))
    assert found.verdict == "unknown"


@pytest.mark.parametrize(
    ("more", "check", "verdict", "words"),
    [
        ({"shardqa_worker_state": "silent"}, "worker", "bad", "silent"),
        ({"shardqa_worker_last_end": "it exited (signal 9)"}, "worker", "ok", "last because it exited (signal 9)"),
        ({"shardqa_worker_last_running": "model m"}, "worker", "ok", "while it ran model m"),
        ({"shardqa_sandbox": "landlock:missing(x) seccomp"}, "sandbox", "warning", "missing"),
        ({"shardqa_sandbox": "off"}, "sandbox", "warning", "off"),
        ({"shardqa_memory_limit_mb": 1000, "shardqa_allocated_mb": 901}, "worker's memory", "warning", "901 of 1000"),
        ({"shardqa_memory_limit_mb": 1000, "shardqa_allocated_mb": 899}, "worker's memory", "ok", "899 of 1000"),
        ({"shardqa_models_quarantined": 1, "shardqa_models_quarantined_keys": "m"}, "models", "bad", "quarantine: m"),
        ({"shardqa_sessions_inactive": 2, "shardqa_sessions_inactive_ids": "a b"}, "functions", "bad", "a b"),
    ],
)
def test_what_info_says_of_the_worker_is_told(more: dict[str, Any], check: str, verdict: str, words: str) -> None:
    (found,) = (one for one in doctor._worker(NODE, client(shardqa={**WELL, **more})) if one.check == check)
    assert (found.verdict, words in found.found) == (verdict, True), found
    assert found.remedy or verdict == "ok"


def test_a_node_without_the_module_is_told_how_to_load_it() -> None:
    told = client(modules={}, shardqa={})
    found = [*doctor._module(NODE, told), *doctor._worker(NODE, told)]
    assert [one.verdict for one in found] == ["bad", "bad"]
    assert all("loadmodule" in one.remedy for one in found)


@pytest.mark.parametrize(("version", "verdict"), [("7.0.15", "ok"), ("8.0.2", "ok"), ("6.2.7", "bad")])
def test_a_server_that_is_too_old_is_bad(version: str, verdict: str) -> None:
    (found,) = doctor._version(NODE, client(server={"redis_version": version}))
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ("User asks has no permissions to run the 'cluster|info' command", "ACL SETUSER asks +cluster|info"),
        ("this user has no permissions to run the 'info' command", "ACL SETUSER asks +info"),
        ("No permissions to access a key", "ACL SETUSER asks ~PATTERN"),
    ],
)
def test_a_right_that_is_missing_is_named_and_no_node_is_called_down(refusal: str, remedy: str) -> None:
    def connect(host: str, port: int) -> Redis:
        raise NoPermissionError(refusal)

    for found in (*doctor.cluster("h:1", connect, "asks", "m", "c"), *doctor._node(NODE, connect, "asks", "m")):
        assert (found.verdict, found.found, remedy in found.remedy) == ("unknown", refusal, True)
