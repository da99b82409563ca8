"""/metrics tells how large each corpus is, and how much of it has vectors."""

import httpx

from shardqa.api.corpus_metrics import MOST, text
from shardqa.schema import CorpusInfo


def corpus(name: str, passages: int, encoded: int | None = None) -> CorpusInfo:
    return CorpusInfo(name=name, documents=1, passages=passages, characters=9, bytes=10, epoch="e", encoded=encoded)


def test_each_corpus_has_its_sizes() -> None:
    told = text([corpus("news", 12, encoded=5)]).decode()
    for line in ("documents", "1.0"), ("passages", "12.0"), ("bytes", "10.0"), ("encoded", "5.0"):
        assert f'shardqa_corpus_{line[0]}{{corpus="news"}} {line[1]}' in told


def test_without_an_encoder_nothing_is_told_of_vectors() -> None:
    assert "shardqa_corpus_encoded{" not in text([corpus("news", 12)]).decode()


def test_the_largest_corpora_alone_have_series() -> None:
    told = text([corpus(f"c{number}", number) for number in range(1, MOST + 3)]).decode()
    assert 'shardqa_corpus_passages{corpus="c3"}' in told
    assert 'shardqa_corpus_passages{corpus="c2"}' not in told


def test_a_scrape_has_the_corpora_of_the_cluster(http: httpx.Client) -> None:
    sent = [{"id": "one", "text": "The mill of Ulmen grinds rye.", "title": "Ulmen"}]
    assert http.post("/v1/documents", params={"corpus": "scraped"}, json=sent).json()["taken"] == 1
    assert 'shardqa_corpus_documents{corpus="scraped"} 1.0' in http.get("/metrics").text
