"""Documents in, by the function and by any writer, and out again."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis.exceptions import ResponseError

from shardqa import keys
from tests.cluster.shards_client import Shards
from tests.nodes import wait_until

SENTENCE = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist, who ground rye there. "
LONG = "".join(f"In the year {1700 + n} the miller Árpád Ōe № {n} wrote: “a good 年, 😀 indeed”. " for n in range(60))


def test_a_document_is_found_once_ingest_has_replied_and_changes_nothing_again(shards: Shards) -> None:
    reply = shards.ingest("mill", SENTENCE, "The mill")
    sizes = {"document": "mill", "passages": 1, "characters": len(SENTENCE), "changed": True}
    assert reply == {"tag": reply["tag"], "epoch": reply["epoch"], **sizes}
    assert shards.documents("Who built the mill at Hallow Ford?") == ["mill"]
    assert shards.ingest("mill", SENTENCE, "The mill") == {**reply, "changed": False}


def test_passages_are_exact_pieces_of_the_document_and_have_their_tokens(shards: Shards) -> None:
    count = shards.ingest("long", LONG, "Étude")["passages"]
    passages = shards.passages("long")
    assert len(passages) == count > 5
    assert [p.get("title") for p in passages] == ["Étude"] + [None] * (count - 1)
    for p in passages:
        assert LONG[int(p["start"]) : int(p["end"])] == p["text"]
    for n in range(count):
        key = keys.tokens(shards.corpus, "long", n)
        meta = shards.redis(key).execute_command("AI.TENSORGET", key, "META")
        assert meta[1] == b"INT32"
        assert 1 <= meta[3][0] <= 320


def test_the_document_itself_is_a_hash_of_its_fields(shards: Shards) -> None:
    shards.ingest("a/b: c", SENTENCE, "T", source="file.txt", metadata='{"year": 1742}')
    fields = shards.redis(shards.doc("a/b: c")).hgetall(shards.doc("a/b: c"))
    assert fields[b"text"].decode() == SENTENCE
    assert (fields[b"title"], fields[b"source"], fields[b"metadata"]) == (b"T", b"file.txt", b'{"year": 1742}')


def test_another_source_alone_is_stored_and_raises_the_epoch_for_filters(shards: Shards) -> None:
    first = shards.ingest("mill", SENTENCE, source="a")
    second = shards.ingest("mill", SENTENCE, source="b")
    assert second["changed"]
    assert second["epoch"] > first["epoch"]
    assert shards.redis(shards.doc("mill")).hget(shards.doc("mill"), "source") == b"b"


def test_the_same_document_from_many_clients_at_once_ends_as_one_of_them(shards: Shards) -> None:
    texts = [LONG * (n % 3 + 1) for n in range(9)]
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(lambda text: shards.ingest("doc", text), texts))
    stored = shards.redis(shards.doc("doc")).hget(shards.doc("doc"), "text")
    assert stored is not None
    last = shards.ingest("doc", stored.decode())
    assert not last["changed"]
    assert shards.belongings("doc") == 2 * last["passages"]


@pytest.mark.parametrize("words", [
    ("text", ""), ("text", " \n\t"), ("text", "\x00\x01\x02"), ("text", b"caf\xe9 au lait"),
    ("text", "good", "title", b"\xff"), ("text", "good", "colour", "red"), ("text",), ("title", "no text"),
    ("text", "good", "metadata", "[1]"), ("text", "good", "metadata", "{"),
])  # fmt: skip
def test_a_bad_document_is_refused_and_leaves_nothing(shards: Shards, words: tuple[str | bytes, ...]) -> None:
    with pytest.raises(ResponseError, match=r"^bad_document: "):
        shards.on_key("Ingest", "bad", *words)
    assert shards.belongings("bad") == 0
    assert not shards.redis(shards.doc("bad")).exists(shards.doc("bad"))


def test_a_document_past_50_megabytes_is_refused(shards: Shards) -> None:
    with pytest.raises(ResponseError, match=r"^document_too_large: .*50,000,001 bytes"):
        shards.ingest("huge", "x" * 50_000_001)


def test_a_key_of_the_wrong_bucket_is_refused_with_the_right_one(shards: Shards) -> None:
    wrong = shards.doc("mill").replace("{b", "{x")
    with pytest.raises(ResponseError, match=r"bad_key: .*write it under"):
        shards.redis(wrong).execute_command("RG.TRIGGERONKEY", "Ingest", wrong, "text", SENTENCE)


def test_a_key_that_holds_another_type_is_left_alone(shards: Shards) -> None:
    key = shards.doc("mill")
    shards.redis(key).set(key, "mine")
    with pytest.raises(ResponseError, match=r"bad_document: .*another type"):
        shards.ingest("mill", SENTENCE)
    assert shards.redis(key).get(key) == b"mine"


# ---- removal


def test_delete_takes_all_that_belongs_to_a_document(shards: Shards) -> None:
    added = shards.ingest("doc", LONG)
    reply = shards.delete("doc")
    assert (reply["deleted"], reply["passages"]) == (True, added["passages"])
    assert reply["epoch"] > added["epoch"]
    assert shards.belongings("doc") == 0
    assert shards.documents("miller") == []
    assert shards.delete("doc")["deleted"] is False


# ---- any writer


def test_a_hash_written_by_any_client_is_found(shards: Shards) -> None:
    key = shards.doc("mill")
    shards.redis(key).hset(key, mapping={"title": "The mill", "text": SENTENCE})
    wait_until(lambda: shards.documents("Hallow Ford") == ["mill"], "the document is found")
    assert shards.ingest("mill", SENTENCE, "The mill")["changed"] is False


@pytest.mark.parametrize("fields", [
    {"title": "mill " * 6_000_000}, {"title": "mill " * 200}, {"text": "mill " * 3_000_000},
    {"source": "s" * 5_000_000},
    {"places": '[[0, {"headings": ["' + "h" * 3_000_000 + '"]}]]'}, {"places": '[[0, {"headings": 5}]]'},
    {"text": "." * 5_000_000}, {"text": "a!" * 500_000},
])  # fmt: skip
def test_what_any_client_writes_past_the_bounds_is_left_alone_and_ends_no_worker(
    shards: Shards, fields: dict[str, str]
) -> None:
    key = shards.doc("doc")
    redis = shards.redis(key)
    worker = redis.info("shardqa")["shardqa_worker_pid"]
    shards.ingest("doc", SENTENCE)
    redis.hset(key, mapping=fields)
    wait_until(lambda: shards.belongings("doc") == 0, "its passages are gone")
    assert shards.ingest("doc", SENTENCE)["changed"] is True
    assert redis.info("shardqa")["shardqa_worker_pid"] == worker


def test_a_title_changed_by_any_client_is_that_of_all_passages(shards: Shards) -> None:
    count = shards.ingest("doc", LONG, "Windmills")["passages"]
    assert len(shards.ranks("windmills", 100)) == count
    shards.redis(shards.doc("doc")).hset(shards.doc("doc"), "title", "Bakeries")
    wait_until(lambda: len(shards.ranks("bakeries", 100)) == count, "all passages have the new title")
    assert shards.ranks("windmills") == []


def test_a_text_changed_by_any_client_replaces_the_old_one(shards: Shards) -> None:
    shards.ingest("doc", LONG)
    key = shards.doc("doc")
    shards.redis(key).hset(key, "text", SENTENCE)
    wait_until(lambda: shards.documents("Hallow Ford") == ["doc"], "the new text is found")
    assert shards.documents("Árpád") == []
    assert shards.belongings("doc") == 2


@pytest.mark.parametrize("command", ["DEL {key}", "PEXPIRE {key} 1", "RENAME {key} elsewhere:{{{bucket}}}:{corpus}"])
def test_a_document_removed_by_any_client_takes_its_passages_with_it(shards: Shards, command: str) -> None:
    shards.ingest("doc", LONG)
    words = command.format(key=shards.doc("doc"), bucket=keys.bucket("doc"), corpus=shards.corpus)
    shards.redis(shards.doc("doc")).execute_command(*words.split())
    wait_until(lambda: shards.belongings("doc") == 0, "the passages are gone")
    wait_until(lambda: shards.documents("miller") == [], "the index has forgotten them")


@pytest.mark.parametrize("text", [b"caf\xe9 \xff\xfe", b"", b" \n"])
def test_an_unreadable_text_of_any_client_is_left_and_not_found(shards: Shards, text: bytes) -> None:
    shards.ingest("doc", SENTENCE)
    key = shards.doc("doc")
    shards.redis(key).hset(key, "text", text)
    wait_until(lambda: shards.belongings("doc") == 0, "the old passages are gone")
    assert shards.redis(key).hget(key, "text") == text
    assert shards.ingest("doc", SENTENCE)["changed"] is True


def test_keys_that_only_look_like_documents_harm_nothing(shards: Shards) -> None:
    for key in ("doc:", "doc:x", f"doc:{shards.corpus}:{{b0001}}:wrong bucket", b"doc:\xff\xfe"):
        shards.client.hset(key, "text", SENTENCE)
        shards.client.delete(key)
    shards.ingest("doc", SENTENCE)
    assert shards.documents("mill") == ["doc"]


def test_every_change_is_announced(shards: Shards) -> None:
    with shards.redis(shards.doc("doc")).pubsub() as channel:
        channel.subscribe(keys.EPOCH_CHANNEL)
        channel.get_message(timeout=5)
        epoch = shards.ingest("doc", SENTENCE)["epoch"]
        heard = wait_until(lambda: _of(shards.corpus, channel.get_message(timeout=1)), "the announcement")
    assert heard == [shards.corpus, shards.tag_of("doc")[0], str(epoch)]
    tag = heard[1]
    assert shards.client.get(keys.epoch(shards.corpus, tag)) == str(epoch).encode()


def _of(corpus: str, message: object) -> list[str] | None:
    words = message["data"].decode().split(" ") if isinstance(message, dict) and message["type"] == "message" else []
    return words if words and words[0] == corpus else None


def test_what_a_client_began_is_finished_when_it_leaves(shards: Shards) -> None:
    key = shards.doc("doc")
    connection = shards.redis(key).connection_pool.get_connection()
    connection.send_command("RG.TRIGGERONKEY", "Ingest", key, "text", LONG * 50)
    wait_until(lambda: shards.redis(key).exists(key), "the first frame is written")
    connection.disconnect()
    wait_until(lambda: shards.redis(key).hexists(key, "digest"), "the last frame is written")
    assert shards.ingest("doc", LONG * 50)["changed"] is False
