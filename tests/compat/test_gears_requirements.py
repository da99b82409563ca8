"""REQUIREMENTS of scripts, from a folder of wheels."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from redis import Redis, ResponseError

from tests.compat.scripts import fields, send
from tests.compat.wheels import make_source, make_wheel
from tests.nodes import Node, running_node, wait_until

SCRIPT = """
import {module}
GB('CommandReader').map(lambda r: {module}.VALUE).register(trigger='{module}')
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "sqa_first", "1.0", "one")
    make_wheel(folder, "sqa_first", "2.0", "two")
    make_wheel(folder, "sqa_second", "0.1", "second")
    make_wheel(folder, "sqa_third", "1.0", "third")
    make_wheel(folder, "redis", "3.5.3", "old")
    make_wheel(folder, "cloudpickle", version("cloudpickle"), "own")
    return folder


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Iterator[Node]:
    arguments = ("REQUIREMENTS_DIR", str(wheels))
    with running_node(tmp_path_factory.mktemp("node"), module_arguments=arguments) as node:
        yield node


@pytest.fixture
def client(node: Node) -> Iterator[Redis]:
    with node.client(decode_responses=True) as client:
        yield client


def execute(client: Redis, code: str, *words: str) -> object:
    return send(client, "RG.PYEXECUTE", code, *words)


def test_what_a_script_requires_is_installed_kept_and_there_after_a_restart(node: Node, client: Redis) -> None:
    with pytest.raises(ResponseError, match="ModuleNotFoundError"):
        execute(client, SCRIPT.format(module="sqa_first"))
    assert execute(client, SCRIPT.format(module="sqa_first"), "ID", "r", "REQUIREMENTS", "sqa_first<2") == "OK"
    assert send(client, "RG.TRIGGER", "sqa_first") == ["one"]
    (requirement,) = map(fields, send(client, "RG.PYDUMPREQS"))
    assert (requirement["Name"], requirement["IsDownloaded"], requirement["IsInstalled"]) == (
        "sqa_first<2",
        "yes",
        "yes",
    )
    assert requirement["Wheels"] == ["sqa_first-1.0-py3-none-any.whl"]
    (session,) = map(fields, send(client, "RG.PYDUMPSESSIONS", "CODE", "SESSIONS", "r"))
    assert (session["requirements"], session["code"]) == (["sqa_first<2"], SCRIPT.format(module="sqa_first"))
    (session,) = map(fields, send(client, "RG.PYDUMPSESSIONS", "VERBOSE", "SESSIONS", "r"))
    assert session["requirements"] == send(client, "RG.PYDUMPREQS")
    node.restart()
    wait_until(lambda: send(client, "RG.TRIGGER", "sqa_first") == ["one"], "it is there again")
    assert send(client, "RG.PYDUMPREQS")


def test_a_run_may_require_several(client: Redis) -> None:
    code = "import sqa_second\nGB('ShardsIDReader').map(lambda x: sqa_second.VALUE).run()"
    assert execute(client, code, "REQUIREMENTS", "sqa_second==0.1", "sqa_first") == [["second"], []]


def test_a_session_gets_the_version_that_it_requires_and_others_keep_theirs(client: Redis) -> None:
    code = """
import redis, importlib
def lazily(r):
    from redis import VALUE
    return [redis.VALUE, VALUE, importlib.import_module('redis').VALUE]
GB('CommandReader').map(lazily).register(trigger='{0}')
"""
    assert execute(client, code.format("old-redis"), "REQUIREMENTS", "redis==3.5.3") == "OK"
    assert send(client, "RG.TRIGGER", "old-redis") == ["['old', 'old', 'old']"]
    own = "import redis\nGB('ShardsIDReader').map(lambda _: hasattr(redis, 'VALUE')).run()"
    assert execute(client, own) == [["False"], []]
    later = (
        "import sqa_third, redis\nGB('ShardsIDReader').map(lambda _: (sqa_third.VALUE, hasattr(redis, 'VALUE'))).run()"
    )
    with pytest.raises(ResponseError, match="ModuleNotFoundError"):
        execute(client, later)
    execute(client, "", "REQUIREMENTS", "redis==3.5.3", "sqa_third")
    assert execute(client, later) == [["('third', False)"], []]  # what only that list brought is there for all
    second = "import sqa_first\nGB('ShardsIDReader').map(lambda _: sqa_first.VALUE).run()"
    assert execute(client, second, "REQUIREMENTS", "sqa_first==2.0") == [["two"], []]
    assert execute(client, second, "REQUIREMENTS", "sqa_first==1.0") == [["one"], []]


def test_objects_of_a_private_package_are_pickled_by_its_own_pickle(client: Redis) -> None:
    code = """
import io, redis, pickle
class Own(pickle.Pickler):
    def reducer_override(self, obj):
        return NotImplemented
def pickled(_):
    file = io.BytesIO()
    Own(file).dump([redis.Thing(), redis.Thing])
    assert file.getvalue() == pickle.dumps([redis.Thing(), redis.Thing])
    thing, kind = pickle.loads(file.getvalue())
    return type(thing) is kind is redis.Thing
GB('ShardsIDReader').map(pickled).run()
"""
    assert execute(client, code, "REQUIREMENTS", "redis==3.5.3") == [["True"], []]


def test_a_list_with_packages_of_its_own_has_its_own_cloudpickle_that_finds_them(client: Redis) -> None:
    code = "import cloudpickle\nGB('ShardsIDReader').map(lambda _: cloudpickle.VALUE).run()"
    words = ("FORCE_REINSTALL_REQUIREMENTS", "REQUIREMENTS", "redis==3.5.3", "cloudpickle")
    assert execute(client, code, *words) == [["own"], []]


def test_a_private_package_finds_its_version_and_text_in_annotations_of_dataclasses(client: Redis) -> None:
    code = "import redis\nGB('ShardsIDReader').map(lambda _: (redis.Point(2).number, redis.VERSION)).run()"
    assert execute(client, code, "REQUIREMENTS", "redis==3.5.3") == [["(2, '3.5.3')"], []]


def test_what_a_filter_or_foreach_changes_in_its_record_the_next_step_sees(client: Redis) -> None:
    steps = "map(lambda _: {}).foreach(lambda r: r.update(a=1)).filter(lambda r: r.setdefault('b', 2)).map(sorted)"
    code = f"import redis\nGB('ShardsIDReader').{steps}.run()"
    assert execute(client, code, "REQUIREMENTS", "redis==3.5.3") == [["['a', 'b']"], []]


def test_what_the_worker_has_is_not_fetched(client: Redis) -> None:
    code = "import numpy\nGB('ShardsIDReader').map(lambda _: len(numpy.zeros(3))).run()"
    assert execute(client, code, "REQUIREMENTS", "numpy>=1") == [["3"], []]  # the folder has none


def test_sources_are_built_behind_walls_where_that_is_allowed(tmp_path: Path) -> None:
    folder, private = tmp_path / "sources", tmp_path / "redis.secret"
    folder.mkdir()
    private.write_text("requirepass")
    make_source(folder, "sqa_source", private)
    code, arguments = SCRIPT.format(module="sqa_source"), ("REQUIREMENTS_DIR", str(folder))
    for words in (), ("REQUIREMENTS_SDIST", "yes"):
        with running_node(tmp_path / f"node{len(words)}", module_arguments=(*arguments, *words)) as node:
            client = node.client(decode_responses=True)
            if not words:
                with pytest.raises(ResponseError, match=r"REQUIREMENTS_SDIST yes"):
                    execute(client, code, "REQUIREMENTS", "sqa_source")
                with pytest.raises(ResponseError, match=r"addresses are taken where .* REQUIREMENTS_SDIST yes"):
                    execute(client, code, "REQUIREMENTS", "git+https://example.org/a.git@v1")
                continue
            assert execute(client, code, "REQUIREMENTS", "sqa_source") == "OK"
            assert send(client, "RG.TRIGGER", "sqa_source") == ["built, refused r w"]
    assert not private.with_name("redis.secret.new").exists()


def from_index(client: Redis, code: str, *words: str) -> object:
    try:
        return execute(client, code, *words)
    except ResponseError as error:
        if "pip could not install" in str(error):
            pytest.skip(f"nothing comes from the index here: {error}")
        raise


@pytest.mark.slow
def test_two_sessions_have_two_numpys_beside_the_workers(tmp_path: Path) -> None:
    code = """
import numpy
def version(r):
    return numpy.__version__, execute('ECHO', 'here'), int(numpy.add(*map(int, r[1:])))
GB('CommandReader').map(version).register(trigger='{0}')
"""
    with running_node(tmp_path) as node, node.client(decode_responses=True) as client:
        for number in ("1.26.4", "1.25.2"):
            name = f"numpy-{number}"
            assert from_index(client, code.format(name), "ID", name, "REQUIREMENTS", f"numpy=={number}") == "OK"
            assert send(client, "RG.TRIGGER", name, 1, 2) == [f"('{number}', 'here', 3)"]
        execute(client, code.format("numpy"), "ID", "numpy")
        assert send(client, "RG.TRIGGER", "numpy", 1, 2) == [f"('{version('numpy')}', 'here', 3)"]


@pytest.mark.slow
def test_objects_of_a_clashing_package_cross_shards_and_its_functions_are_registered_on_all(
    shards: list[Redis],
) -> None:
    words = ("REQUIREMENTS", "redis==3.5.3")
    code = """
import redis
class Most:
    def __init__(self, version):
        self.version = version
    def __add__(self, other):
        return Most(max(self.version, other.version))
def add(a, r):
    return a + r if a else r
GB('ShardsIDReader').map(lambda _: Most(redis.__version__)).aggregate(None, add, add).map(lambda m: m.version).run()
"""
    assert from_index(shards[0], code, *words) == [["3.5.3"], []]
    code = "import redis\nGB('CommandReader').map(lambda _: redis.__version__).register(trigger='old-redis')"
    assert execute(shards[0], code, "ID", "old-redis", "UPGRADE", *words) == "OK"
    assert send(shards[1], "RG.TRIGGER", "old-redis") == ["3.5.3"] * 3


def test_they_may_be_installed_anew(node: Node, client: Redis, wheels: Path) -> None:
    make_wheel(wheels, "sqa_third", "1.0", "old")
    code = "import sqa_third, importlib\nimportlib.reload(sqa_third)\n"
    code += "GB('ShardsIDReader').map(lambda x: sqa_third.__file__).run()"
    (before,) = execute(client, code, "REQUIREMENTS", "sqa_third")[0]  # type: ignore[index]
    (same,) = execute(client, code, "REQUIREMENTS", "sqa_third")[0]  # type: ignore[index]
    assert before == same
    execute(client, code, "FORCE_REINSTALL_REQUIREMENTS", "REQUIREMENTS", "sqa_third")
    assert len(list((node.folder / "shardqa-packages").glob(f"{Path(before).parent.name.partition('-')[0]}-*"))) == 2


def test_a_failure_says_what_pip_said_and_registers_nothing(client: Redis) -> None:
    with pytest.raises(
        ResponseError, match=r"not satisfy requirements: pip could not install sqa_nothing.*No matching distribution"
    ):
        execute(client, SCRIPT.format(module="sqa_nothing"), "REQUIREMENTS", "sqa_nothing")
    with pytest.raises(ResponseError, match="subcommand not found"):
        send(client, "RG.TRIGGER", "sqa_nothing")


def children_of(pid: int) -> list[Path]:
    return [Path("/proc", child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_redis_serves_others_while_pip_works_and_all_processes_end_with_their_worker(node: Node, client: Redis) -> None:
    execute(client, "import redis", "REQUIREMENTS", "redis==3.5.3")
    pid = client.info("shardqa")["shardqa_worker_pid"]
    own = children_of(pid)
    children = [*own, *(below for child in own for below in children_of(int(child.name)))]
    assert len(own) == 2  # pip's, and what begins interpreters
    assert len(children) > 2
    assert client.ping()
    node.kill()
    wait_until(lambda: not any(child.exists() for child in children), "they have gone")
    node.restart()


def test_requirements_can_be_forbidden(tmp_path: Path) -> None:
    with running_node(tmp_path, module_arguments=("REQUIREMENTS_DIR", "no")) as node, node.client() as client:
        with pytest.raises(ResponseError, match="REQUIREMENTS_DIR no"):
            execute(client, "1", "REQUIREMENTS", "sqa_first")
        assert not (node.folder / "shardqa-packages").exists()
