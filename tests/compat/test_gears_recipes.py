"""Programs that people wrote RedisGears for (docs/recipes), on one node and on three shards, with exact results."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import RedisCluster

from shardqa.cluster.local import LocalCluster
from tests.compat.scripts import registrations, send
from tests.nodes import Node, wait_until

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"


class Place:
    """One node, or a cluster: its client, and one node of it for commands that name no key."""

    def __init__(self, client: Any, nodes: list[Any]) -> None:
        self.client = client
        self.nodes = nodes

    def run(self, name: str) -> Any:
        """Sends a recipe to the last node."""
        return send(self.nodes[-1], "RG.PYEXECUTE", (RECIPES / f"{name}.py").read_text(), "ID", name, "UPGRADE")

    def registrations(self, name: str) -> list[str]:
        entries = registrations(self.nodes[0])
        return [entry["id"] for entry in entries if f"'sessionName':'{name}'" in entry["PD"]]

    def trigger(self, name: str, key: str) -> Any:
        """On the shard of the key."""
        node = self.client
        if isinstance(self.client, RedisCluster):
            found = self.client.get_node_from_key(key)
            assert found is not None
            node = self.client.get_redis_connection(found)
        return send(node, "RG.TRIGGERONKEY", name, key)

    def keys(self, pattern: str) -> set[str]:
        return {key for node in self.nodes for key in node.scan_iter(match=pattern, count=1_000)}

    def clean(self, *patterns: str) -> None:
        for key in set().union(*map(self.keys, patterns)):
            self.client.delete(key)


@pytest.fixture(params=["one node", "three shards"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "one node":
        node: Node = request.getfixturevalue("redis_node")
        with node.client(decode_responses=True) as lone:
            yield Place(lone, [lone])
        return
    shards: LocalCluster = request.getfixturevalue("bare_cluster")
    host, _, port = shards.seed().rpartition(":")
    client: Any = RedisCluster(host=host, port=int(port), decode_responses=True, socket_timeout=120)
    yield Place(client, [client.get_redis_connection(node) for node in client.get_primaries()])
    client.close()


@pytest.fixture
def registered(place: Place) -> Iterator[list[str]]:
    """Names of recipes whose registrations go when the test ends."""
    names: list[str] = []
    yield names
    for name in names:
        for id in place.registrations(name):
            send(place.nodes[0], "RG.UNREGISTER", id)


def test_read_through_cache(place: Place, registered: list[str]) -> None:
    registered.append("read_through")
    assert place.run("read_through") == "OK"
    names = [f"cache:item-{n}" for n in range(30)]
    assert [place.client.get(name) for name in names] == [str(n * n) for n in range(30)]
    assert [place.client.get(name) for name in names] == [str(n * n) for n in range(30)]
    assert place.keys("cache:*") == set(names)
    assert all(0 < place.client.ttl(name) <= 60 for name in names)
    assert place.client.get("cache:nobody-sells-it") is None
    place.clean("cache:*")


def people(place: Place) -> dict[str, str]:
    return {name: row for key in place.keys("people:*") for name, row in place.client.hgetall(key).items()}


def test_write_behind(place: Place, registered: list[str]) -> None:
    registered.append("write_behind")
    assert place.run("write_behind") == "OK"
    for n in range(40):
        place.client.hset(f"person:{n}", mapping={"name": f"Ann {n}", "age": n})
    for n in range(0, 40, 2):
        place.client.hset(f"person:{n}", "age", 100 + n)
    for n in range(0, 40, 4):
        place.client.delete(f"person:{n}")
    wanted = {f"person:{n}": f"age={n if n % 2 else 100 + n} name=Ann {n}" for n in range(40) if n % 4}
    wait_until(lambda: people(place) == wanted, "the database is as the keys are")
    wait_until(lambda: not sum(place.client.xlen(key) for key in place.keys("changes:*")), "the streams are empty")
    place.clean("people:*", "changes:*", "person:*")


TEXTS = ["The ferry sails at noon", "A ferry at the pier", "Noon, and no ferry"]


def test_word_count(place: Place) -> None:
    for n in range(60):
        place.client.hset(f"article:{n}", "text", TEXTS[n % 3])
    results, errors = place.run("word_count")
    counted = Counter(word for text in TEXTS for word in re.findall(r"\w+", text.lower()))
    assert sorted(results) == sorted(str({"key": word, "value": 20 * count}) for word, count in counted.items())
    assert errors == []
    place.clean("article:*")


def test_inverted_index(place: Place) -> None:
    for n in range(60):
        place.client.hset(f"note:{n}", "text", TEXTS[n % 3])
    index = {word: set[str]() for text in TEXTS for word in re.findall(r"\w+", text.lower())}
    for n in range(60):
        for word in re.findall(r"\w+", TEXTS[n % 3].lower()):
            index[word].add(f"note:{n}")
    for _ in range(2):  # a second run changes nothing
        assert place.run("inverted_index") == [[str(len(index))], []]
        assert {key: place.client.smembers(key) for key in place.keys("index:*")} == {
            f"index:{{{word}}}": names for word, names in index.items()
        }
    place.clean("note:*", "index:*")


def test_rate_limiter(place: Place, registered: list[str]) -> None:
    registered.append("rate_limiter")
    assert place.run("rate_limiter") == "OK"
    for user in ("ann", "bob", "cleo"):
        replies = [place.trigger("Allow", user)[0] for _ in range(12)]
        assert replies[:10] == ["allowed"] * 10
        assert all(re.fullmatch(r"refused, again in \d+ s", reply) for reply in replies[10:])
        assert place.client.get(f"rate:{{{user}}}") == "12"
    place.clean("rate:*")


def test_ttl_janitor(place: Place) -> None:
    for n in range(100):
        place.client.set(f"session:{n}", "x", ex=50 if n % 4 == 0 else None)
    assert place.run("ttl_janitor") == [["75"], []]
    assert all((place.client.ttl(f"session:{n}") <= 50) == (n % 4 == 0) for n in range(100))
    assert place.run("ttl_janitor") == [[], []]
    place.clean("session:*")


def test_dedupe(place: Place) -> None:
    for n in range(90):
        place.client.hset(f"photo:{n:02}", mapping={"pixels": n % 30, "width": 640})
    assert place.run("dedupe") == [["60"], []]
    assert place.keys("photo:*") == {f"photo:{n:02}" for n in range(30)}
    place.clean("photo:*")


def test_batch_reencode(place: Place) -> None:
    orders = {f"order:{n}": {"item": f"rope {n}", "count": n, "paid": n % 2 == 0} for n in range(50)}
    for key, order in orders.items():
        place.client.set(key, json.dumps(order))
    place.client.set("order:broken", '["no object"]')
    results, errors = place.run("reencode")
    assert results == ["50"]
    assert len(errors) == 1
    assert "order:broken holds no JSON object" in errors[0]
    found = {key: {f: json.loads(v) for f, v in place.client.hgetall(key).items()} for key in orders}
    assert found == orders
    assert place.client.get("order:broken") == '["no object"]'
    place.client.delete("order:broken")
    assert place.run("reencode") == [[], []]
    place.clean("order:*")


def test_each_recipe_says_what_it_is_for_and_is_run_here() -> None:
    recipes = sorted(RECIPES.glob("*.py"))
    for path in recipes:
        assert [line[:2] for line in path.read_text().splitlines()[:3]] == ["# "] * 3, path.name
    here = Path(__file__).read_text()
    assert not [path.stem for path in recipes if f'run("{path.stem}")' not in here]
