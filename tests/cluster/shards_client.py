"""Plain Redis commands on the shards of a test's cluster: what any client in any language would send."""

import json
from itertools import count
from typing import Any

from redis import RedisCluster
from redis.cluster import ClusterNode

from shardqa import keys
from shardqa.cluster.local import LocalCluster
from shardqa.models import shipped


def story(size: int, first: int = 0) -> str:
    """Sentences that differ, `size` characters of them."""
    parts, length = list[str](), 0
    for n in count(first):
        if length >= size:
            return "".join(parts)[:size]
        parts.append(f"In the year {n} miller {n * 7919 % 10_007} of village {n * 31 % 997} ground {n % 89} sacks. ")
        length += len(parts[-1])
    raise AssertionError


class Shards:
    """A cluster client, and the functions by name."""

    def __init__(self, cluster: LocalCluster, corpus: str) -> None:
        host, _, port = cluster.seed().rpartition(":")
        self.client: Any = RedisCluster(host=host, port=int(port), socket_timeout=120)
        self.corpus = corpus

    def close(self) -> None:
        self.client.close()

    def nodes(self) -> list[ClusterNode]:
        return sorted(self.client.get_primaries(), key=lambda node: str(node.name))

    def redis(self, key: str) -> Any:
        """A client of the node that owns a key."""
        node = self.client.get_node_from_key(key)
        assert node is not None
        return self.client.get_redis_connection(node)

    def all(self, *command: Any) -> list[Any]:
        """The JSON replies of a function on every master."""
        return [json.loads(self.client.execute_command(*command, target_nodes=node)[0]) for node in self.nodes()]

    def doc(self, document: str) -> str:
        return keys.doc(self.corpus, document)

    def ingest(self, document: str, text: str | bytes, title: str = "", **more: str) -> Any:
        rest = [word for pair in more.items() for word in pair]
        return self.on_key("Ingest", document, "title", title, "text", text, *rest)

    def delete(self, document: str) -> Any:
        return self.on_key("Delete", document)

    def on_key(self, function: str, document: str, *words: Any) -> Any:
        key = self.doc(document)
        return json.loads(self.redis(key).execute_command("RG.TRIGGERONKEY", function, key, *words)[0])

    def statistics(self, question: str) -> dict[str, Any]:
        """The sum of all shards' Terms."""
        total: dict[str, Any] = {"df": {}, "cf": {}}
        for reply in self.all("RG.TRIGGER", "Terms", self.corpus, question):
            for name, value in reply.items():
                if name in ("tag", "epoch", "titled"):
                    continue
                if isinstance(value, dict):
                    for term, count in value.items():
                        of_terms = total.setdefault(name, {})
                        of_terms[term] = of_terms.get(term, 0) + count
                else:
                    total[name] = total.get(name, 0) + value
        return total

    def ranks(self, question: str, limit: int = 10) -> list[tuple[str, float]]:
        """The merged list of all shards."""
        statistics = json.dumps(self.statistics(question))
        replies = self.all("RG.TRIGGER", "Rank", self.corpus, question, limit, statistics)
        pairs = [(key, score) for reply in replies for key, score in reply["passages"]]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def documents(self, question: str) -> list[str]:
        return list(dict.fromkeys(keys.parse_passage(key).document for key, _ in self.ranks(question)))

    def passages(self, document: str) -> list[dict[str, str]]:
        """All passage hashes of a document, in order."""
        client = self.redis(self.doc(document))
        found: list[dict[str, str]] = []
        while fields := client.hgetall(keys.passage(self.corpus, document, len(found))):
            found.append({name.decode(): value.decode() for name, value in fields.items()})
        return found

    def belongings(self, document: str) -> int:
        """Passages and token tensors that there are of a document."""
        client = self.redis(self.doc(document))
        bucket = keys.bucket(document)
        return sum(
            1
            for word in ("passage", "tokens")
            for _ in client.scan_iter(match=f"{word}:{self.corpus}:{{{bucket}}}:{document}:*", count=1_000)
        )

    def tag_of(self, document: str) -> tuple[str, int]:
        """(tag, epoch) of the shard that holds a document."""
        (reply,) = self.redis(self.doc(document)).execute_command("RG.TRIGGER", "Corpora")
        found = json.loads(reply)
        return found["tag"], found["corpora"].get(self.corpus, {"epoch": 0})["epoch"]

    def answer_key(self, document: str, question: str, k: int = 5, model: str = shipped.NAME) -> str:
        tag, epoch = self.tag_of(document)
        return keys.answer(self.corpus, tag, epoch, model, k, keys.normalise_question(question))
