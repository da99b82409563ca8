"""Terms and Rank on three real shards."""

import json
from typing import Any

import pytest
from redis.exceptions import ResponseError

from shardqa import keys
from shardqa.analysis import query
from tests import exact
from tests.cluster.shards_client import Shards

TEXTS = {
    f"{subject}-{n}": f"The {subject} of {place} was finished in {1700 + 7 * n}. It stands by the river. "
    for n, place in enumerate(["Hallow", "Brennick", "Tarn", "Ostby", "Quill", "Merrow"])
    for subject in ("mill", "bridge", "tower")
}


@pytest.fixture
def filled(shards: Shards) -> Shards:
    for document, text in TEXTS.items():
        shards.ingest(document, text, document.replace("-", " "))
    return shards


def trigger(shards: Shards, *words: Any) -> Any:
    """A function on the first master."""
    return json.loads(shards.client.execute_command("RG.TRIGGER", *words, target_nodes=shards.nodes()[0])[0])


def test_the_merged_list_is_that_of_one_index_over_everything(filled: Shards) -> None:
    passages = [
        (keys.passage(filled.corpus, document, 0), document.replace("-", " "), text.strip())
        for document, text in TEXTS.items()
    ]
    for question in ("which tower stands in Ostby", "mill 1742 river", "what was finished near Quill?"):
        asked = query(keys.normalise_question(question))
        assert filled.ranks(question, 100) == exact.rank(passages, asked, 100)


def test_rank_without_statistics_asks_the_other_shards(filled: Shards) -> None:
    question = "which tower stands in Ostby"
    merged = filled.ranks(question, 100)
    alone = filled.all("RG.TRIGGER", "Rank", filled.corpus, question, 100)
    assert sorted(merged) == sorted((key, score) for reply in alone for key, score in reply["passages"])


def test_terms_of_an_unknown_corpus_are_zeros(shards: Shards) -> None:
    reply = trigger(shards, "Terms", "nobody", "who built the mill")
    assert (reply["passages"], reply["documents"], reply["length"], reply["epoch"]) == (0, 0, 0, 0)
    assert set(reply["df"].values()) == {0}


def test_rank_in_an_unknown_corpus_is_empty(shards: Shards) -> None:
    assert trigger(shards, "Rank", "nobody", "who built the mill", 5)["passages"] == []


def test_a_shard_tells_its_tag_and_state_without_its_corpora(filled: Shards) -> None:
    state = trigger(filled, "Shard")
    (corpora,) = [reply for reply in filled.all("RG.TRIGGER", "Corpora") if reply["tag"] == state["tag"]]
    assert state == {"tag": corpora["tag"], "indexing": False, "passages": state["passages"], "refuses": None}
    assert state["passages"] == sum(part["passages"] for part in corpora["corpora"].values())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Rank", "c", "who", "0"), "bad_limit"),
        (("Rank", "c", "who", "10000"), "bad_limit"),
        (("Rank", "c", "who", "five"), "bad_limit"),
        (("Rank", "c", "who", "-1"), "bad_limit"),
        (("Rank", "Not A Name", "who", "5"), "bad_corpus_name"),
        (("Rank", "c", "", "5"), "empty_question"),
        (("Rank", "c", " ?! ", "5"), "empty_question"),
        (("Rank", "c", "x" * 1_000_000, "5"), "question_too_long"),
        (("Rank", "c", b"\xff\xfe", "5"), "bad_data"),
        (("Rank", "c", "who", "5", "not json"), "bad_data"),
        (("Rank", "c", "who", "5", "[]"), "bad_data"),
        (("Rank", "c", "who", "5", '{"passages": -3}'), "bad_data"),
        (("Rank", "c"), "bad_data"),
        (("Terms", "c", "who " * 400), "question_too_long"),
        (("Terms", "c"), "bad_data"),
        (("Terms", "c", "who", "more"), "bad_filter"),
        (("Corpora", "c"), "bad_filter"),
        (("Shard", "c"), "bad_data"),
    ],
)
def test_bad_words_get_an_error_that_names_itself(shards: Shards, words: tuple[Any, ...], code: str) -> None:
    with pytest.raises(ResponseError, match=f"^{code}: "):
        trigger(shards, *words)
