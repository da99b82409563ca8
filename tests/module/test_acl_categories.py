"""ACL categories of the module's commands: Redis 7.2 gives them to modules, 7.4 new ones as well; on 7.0 the right to
DEBUG stands in (docs/operating.md, Users)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from .servers import Server  # noqa: TID251 (this package is tests/module)

OWN = {"ai": "ai.", "gears": "rg."}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("categories")).start()
    yield server
    server.stop()


def of_redis_itself(node: Server) -> str:
    """Returns what the server can do, found out without the module's word for it."""
    info = node.client().info("server")
    if "valkey_version" in info:  # 7.2.4 to modules
        return "own" if int(info["valkey_version"].partition(".")[0]) >= 8 else "standard"
    major, minor, *_ = map(int, info["redis_version"].split("."))
    return "own" if (major, minor) >= (7, 4) else "standard" if (major, minor) >= (7, 2) else "none"


@pytest.fixture
def categorised(node: Server) -> Server:
    if of_redis_itself(node) == "none":
        pytest.skip("Redis before 7.2 gives the commands of modules no ACL category")
    return node


@pytest.fixture
def with_own(categorised: Server) -> Server:
    if of_redis_itself(categorised) != "own":
        pytest.skip("Redis before 7.4 takes no new ACL categories from modules")
    return categorised


def listed(node: Server, *by: str) -> set[str]:
    client = node.client()
    client.response_callbacks.clear()  # redis-py takes every reply to COMMAND for that of COMMAND alone
    return {name.decode().lower() for name in client.execute_command("COMMAND", "LIST", "FILTERBY", *by)}


def commands(node: Server) -> set[str]:
    return listed(node, "MODULE", "shardqa")


def flags(node: Server, name: str) -> set[str]:
    client = node.client()
    client.response_callbacks.clear()
    [(_name, _arity, found, *_)] = client.execute_command("COMMAND", "INFO", name)
    return {flag.decode() for flag in found}


def in_category(node: Server, category: str) -> set[str]:
    """ACL CAT leaves out what modules have, before Redis 7.4 and in Valkey."""
    return listed(node, "ACLCAT", category)


def user(node: Server, *rights: str) -> Any:
    node.client().execute_command("ACL", "SETUSER", "someone", "reset", "on", ">x", "~*", *rights)
    return ("someone", "x")


def test_info_tells_which_categories_there_are(node: Server) -> None:
    assert node.info()["acl_categories"] == of_redis_itself(node)


def test_every_command_reads_or_writes_or_is_neither_by_its_flags(categorised: Server) -> None:
    for name in commands(categorised) - {"ai.config"}:
        words = flags(categorised, name)
        assert (name in in_category(categorised, "write")) == ("write" in words), name
        if name in in_category(categorised, "read"):
            assert "readonly" in words, name


def test_what_needs_debug_is_dangerous(categorised: Server) -> None:
    """Whoever may all but the dangerous is refused for the same commands on all servers."""
    dangerous = commands(categorised) & in_category(categorised, "dangerous")
    assert {"rg.pyexecute", "rg.unregister", "rg._peer", "rg._register", "rg.configset", "ai.config"} <= dangerous
    assert not {"rg.trigger", "rg.triggeronkey", "shardqa.get", "ai.tensorget", "ai.modelexecute"} & dangerous
    assert dangerous == commands(categorised) & in_category(categorised, "admin")


def test_who_may_read_reads_tensors_and_stores_none(categorised: Server) -> None:
    login = user(categorised, "+@read")
    client = categorised.client(username=login[0], password=login[1])
    assert client.execute_command("AI._MODELSCAN") == []
    assert "TENSORSET" in categorised.error("AI.TENSORSET", "t", "FLOAT", "1", "VALUES", "1", login=login).upper()
    assert categorised.error("RG.PYEXECUTE", "1", login=login).startswith("NOPERM")


def test_who_may_get_strings_may_use_the_hook(categorised: Server) -> None:
    login = user(categorised, "+@string")
    categorised.hook()
    client = categorised.client(username=login[0], password=login[1])
    assert client.get("answer:1") == b"value of answer:1"


def test_a_category_of_its_own_holds_each_family(with_own: Server) -> None:
    for category, prefix in OWN.items():
        assert in_category(with_own, category) == {name for name in commands(with_own) if name.startswith(prefix)}


def test_a_family_is_granted_and_taken_as_one(with_own: Server) -> None:
    login = user(with_own, "+@ai")
    client = with_own.client(username=login[0], password=login[1])
    assert client.execute_command("AI.TENSORSET", "t", "FLOAT", "1", "VALUES", "1") == b"OK"
    assert with_own.error("RG.TRIGGER", "echo", login=login).startswith("NOPERM")
    login = user(with_own, "+@all", "-@gears")
    assert with_own.error("RG.TRIGGER", "echo", login=login).startswith("NOPERM")
    assert client.execute_command("AI.TENSORGET", "t", "VALUES") == [b"1"]


def test_all_but_the_dangerous_runs_no_code_on_any_server(node: Server) -> None:
    """Without categories `-@dangerous` leaves RG.PYEXECUTE, and its user lacks the right to DEBUG."""
    login = user(node, "+@all", "-@dangerous")
    of_runs = "RG.DUMPEXECUTIONS", "RG.GETRESULTS x", "RG.ABORTEXECUTION x"
    for words in ("RG.PYEXECUTE 1", "RG.UNREGISTER x", "RG.CONFIGSET a 1", *of_runs):
        assert re.match("NOPERM", node.error(*words.split(), login=login)), words
    assert node.client(username=login[0], password=login[1]).execute_command("RG.TRIGGER", "echo", "x") == [b"x"]


def test_redis_7_0_knows_no_category_of_a_module(node: Server) -> None:
    if of_redis_itself(node) != "none":
        pytest.skip("this Redis gives the commands of modules categories")
    assert "Unknown command or category" in node.error("ACL", "SETUSER", "x", "+@ai")
    assert not commands(node) & (in_category(node, "read") | in_category(node, "dangerous"))
