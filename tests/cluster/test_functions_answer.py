"""A GET of an answer key that is not there: computed, told, and stored while it is true."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis.exceptions import ResponseError

from shardqa import keys
from shardqa.models import metrics, shipped
from tests.cluster.shards_client import Shards, story
from tests.nodes import wait_until

MILL = "The mill at Hallow Ford was built in 1742 by the brothers Anders and Jon Lindqvist. It ground rye until 1911."
QUESTION = "When was the mill at Hallow Ford built?"


def get(shards: Shards, key: str) -> Any:
    value = shards.client.get(key)
    assert value is not None
    return json.loads(value)


@pytest.fixture
def mill(shards: Shards) -> str:
    """The mill is ingested; the key of its answer."""
    shards.ingest("mill", MILL, "The mill")
    return shards.answer_key("mill", QUESTION)


def test_a_get_of_a_fresh_key_is_answered_by_the_reader_and_stored_for_a_while(shards: Shards, mill: str) -> None:
    reply = get(shards, mill)
    best = reply["spans"][0]
    assert (best["text"], best["document"], reply["passages"][best["passage"]]["title"]) == ("1742", "mill", "The mill")
    assert best["span_logit"] > best["null_logit"]
    assert reply["cached"] is False
    assert reply["question"] == keys.normalise_question(QUESTION)
    assert {"rank", "load", "tokenise", "read", "span", "total"} <= set(reply["us"])
    wait_until(lambda: shards.client.exists(mill), "the answer is stored")
    assert 0 < shards.client.ttl(mill) <= 3_600
    assert get(shards, mill) == {**reply, "cached": True}


def test_spans_are_exact_places_of_any_unicode(shards: Shards) -> None:
    text = "".join(
        f"№ {n}: Ōe Árpád (大江) built e\u0301tage 😀{n} of the “Straßenmühle” in {1700 + n}. " for n in range(40)
    )
    shards.ingest("étude", text)
    reply = get(shards, shards.answer_key("étude", "who built the étage of the Straßenmühle in 1717?", k=10))
    assert 5 <= len(reply["spans"]) <= 20
    assert reply["passages"].keys() >= {span["passage"] for span in reply["spans"]}
    for span in reply["spans"]:
        assert text[span["start"] : span["end"]] == span["text"]
    for passage in reply["passages"].values():
        assert text[passage["start"] : passage["start"] + len(passage["text"])] == passage["text"]
        assert 1 <= len(passage["sentences"]) <= 9


def test_a_passage_has_its_sentences_and_a_span_its_own(shards: Shards) -> None:
    text = f"{MILL} The brothers fell out over the weir."
    shards.ingest("mill", text)
    reply = get(shards, shards.answer_key("mill", QUESTION))
    (passage,) = reply["passages"].values()
    sentences = [text[start:end] for start, end, *_ in passage["sentences"]]
    assert " ".join(sentences) == text
    assert text[slice(*reply["spans"][0]["sentence"])] == sentences[0]
    assert max(passage["sentences"], key=lambda one: one[2])[:2] == reply["spans"][0]["sentence"]


def test_a_span_of_nothing_but_commas_and_articles_is_no_candidate(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    spans = get(shards, shards.answer_key("mill", "Who built the mill at Hallow Ford?", k=10))["spans"]
    assert spans
    assert all(metrics.normalise(span["text"]) for span in spans)


def test_an_answer_of_another_epoch_is_given_and_not_stored(shards: Shards, mill: str) -> None:
    tag, epoch = shards.tag_of("mill")
    old = keys.answer(shards.corpus, tag, epoch - 1, shipped.NAME, 5, keys.normalise_question(QUESTION))
    assert get(shards, old)["epoch"] == epoch
    get(shards, shards.answer_key("mill", QUESTION, k=4))
    wait_until(lambda: shards.client.exists(shards.answer_key("mill", QUESTION, k=4)), "the later one is stored")
    assert not shards.client.exists(old)


def test_k_passages_are_read_and_no_more(shards: Shards) -> None:
    for n in range(6):
        shards.ingest(f"mill-{n}", MILL)
    for document in ("mill-0", "mill-3"):
        reply = get(shards, shards.answer_key(document, QUESTION, k=1))
        assert reply["batch"] == 1
        assert len({span["passage"] for span in reply["spans"]}) == 1


def test_a_later_stage_reads_no_passage_again_unless_the_corpus_has_changed(shards: Shards) -> None:
    parts = [f"{MILL} {story(2_000, n)}" for n in range(3)]
    shards.ingest("mill", " ".join(parts))
    batches = [get(shards, shards.answer_key("mill", QUESTION, k=k))["batch"] for k in (1, 2)]
    shards.ingest("mill", " ".join(parts[::-1]))
    assert [*batches, get(shards, shards.answer_key("mill", QUESTION, k=3))["batch"]] == [1, 1, 3]


def test_a_corpus_without_documents_has_no_spans(shards: Shards) -> None:
    assert get(shards, shards.answer_key("nothing", QUESTION))["spans"] == []


def test_a_long_question_stands_hashed_in_its_key_once_it_was_ranked(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    aside = ", by the brothers that ground the rye there,"
    long = f"When was the mill at Hallow Ford built{aside * 14} in the first place?"
    key = shards.answer_key("mill", long)
    assert f":{keys.HASHED}" in key
    with pytest.raises(ResponseError, match=r"bad_key: .*RG\.TRIGGER Rank"):
        shards.client.get(key)
    with pytest.raises(ResponseError, match=r"question_too_long: .*at most 128"):
        shards.ranks(long)
    long = "When was the international mill built" + " international" * 20 + "?"
    shards.ranks(long)
    assert get(shards, shards.answer_key("mill", long))["spans"]


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        (f"1:{shipped.NAME}:0:who", "bad_limit"),
        (f"1:{shipped.NAME}:10000:who", "bad_limit"),
        (f"1:{shipped.NAME}:5:" + "who is it " * 50, "question_too_long"),
        (f"1:{shipped.NAME}:5:?", "empty_question"),
        (f"1:{shipped.NAME}:five:who", "bad_key"),
        (shipped.NAME, "bad_key"),
        ("", "bad_key"),
        (b"1:m:5:\xff\xfe", "bad_key"),
    ],
)
def test_a_key_that_can_not_be_answered_gets_an_error_that_names_itself(
    shards: Shards, tail: str | bytes, code: str
) -> None:
    tag, _ = shards.tag_of("mill")
    end = tail if isinstance(tail, bytes) else tail.encode()
    with pytest.raises(ResponseError, match=f"^{code}: "):
        shards.client.get(f"answer:{shards.corpus}:{{{tag}}}:".encode() + end)


def test_a_key_of_a_tag_that_is_no_shards_is_not_answered_from_whatever_shard_has_its_slot(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    with pytest.raises(ResponseError, match=r"wrong_shard: the shard of \{b0001\} can't be asked here"):
        shards.client.get(keys.answer(shards.corpus, "b0001", 1, shipped.NAME, 3, "who"))


def test_a_model_that_no_shard_has_is_named(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    with pytest.raises(ResponseError, match=r"cluster_unavailable: no shard has the model 'nosuch'.*shardqa"):
        shards.client.get(shards.answer_key("mill", QUESTION, model="nosuch"))


def test_a_shard_without_the_model_takes_it_from_another_with_its_label_and_its_batching(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    tag, _ = shards.tag_of("mill")
    key = keys.model(shipped.NAME, tag)
    before = shards.redis(key).execute_command("AI.MODELGET", key, "META")
    assert shards.redis(key).execute_command("AI.MODELDEL", key) == b"OK"
    numbers = itertools.count(2)

    def is_copied() -> bool:
        """Asks anew; the worker may hold the old one for a moment."""
        assert get(shards, shards.answer_key("mill", QUESTION, k=next(numbers)))["spans"][0]["text"] == "1742"
        return bool(shards.redis(key).exists(key))

    wait_until(is_copied, "the model is here again")
    assert shards.redis(key).execute_command("AI.MODELGET", key, "META") == before


def test_a_passage_that_vanished_is_not_answered_from(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    passage = keys.passage(shards.corpus, "mill", 0)
    shards.redis(passage).unlink(passage)
    assert get(shards, shards.answer_key("mill", QUESTION))["spans"] == []


def test_a_passage_that_vanished_while_its_document_is_being_changed_is_not_answered_from(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    passage, answer = keys.passage(shards.corpus, "mill", 0), shards.answer_key("mill", QUESTION)
    node = shards.redis(passage)
    with ThreadPoolExecutor() as pool:
        change = pool.submit(shards.ingest, "mill", story(4_000_000))
        wait_until(lambda: node.info("shardqa")["shardqa_functions_running"] > 0, "the change has begun")
        node.unlink(passage)
        spans = json.loads(node.get(answer))["spans"]
        assert not change.done()
        change.result()
    assert spans == []


def test_times_are_shown_by_info(shards: Shards) -> None:
    shards.ingest("mill", MILL)
    key = shards.answer_key("mill", QUESTION)

    def has_percentiles() -> bool:
        shards.ranks(QUESTION)
        info = shards.redis(key).info("shardqa")
        return any(name.endswith("rank_us_p99") for name in info)

    wait_until(has_percentiles, "INFO shows percentiles")
