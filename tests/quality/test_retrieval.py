"""Recall on real questions, and that the cut into shards does not show in the lists."""

from pathlib import Path

import pytest

from bench import retrieval
from shardqa import keys
from shardqa.analysis import query
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped, squad
from shardqa.models.metrics import recall_at
from shardqa.models.tokenizer import Tokenizer
from tests import exact

QUESTIONS = 1_500  # every seventh of the file


@pytest.fixture(scope="module")
def dev(shared: Path) -> squad.QuestionSet:
    return squad.read(shared / "data/squad/dev-v1.1.json.gz")


@pytest.fixture(scope="module")
def paragraphs(dev: squad.QuestionSet) -> retrieval.Split:
    tokenizer = Tokenizer.load(shipped.folder())
    return [(paragraph, split(paragraph.text, tokenizer)) for paragraph in dev.paragraphs]


@pytest.fixture(scope="module")
def one_shard(dev: squad.QuestionSet, paragraphs: retrieval.Split) -> retrieval.Measured:
    return retrieval.measure(retrieval.shards_of(paragraphs, 1), dev.questions[::7][:QUESTIONS])


def test_documents_are_found_as_well_as_bm25_on_whole_paragraphs_finds_them(one_shard: retrieval.Measured) -> None:
    # All 10,570 questions: 80.9, 93.9, 97.6; BM25 on whole paragraphs with titles: 76.8, 92.2, 96.9.
    assert recall_at(1, one_shard.ranks) >= 0.78
    assert recall_at(5, one_shard.ranks) >= 0.92
    assert recall_at(20, one_shard.ranks) >= 0.965


@pytest.mark.parametrize("count", [2, 5])
def test_lists_of_real_text_are_equal_on_any_number_of_shards(
    dev: squad.QuestionSet, paragraphs: retrieval.Split, one_shard: retrieval.Measured, count: int
) -> None:
    some = dev.questions[::7][:300]
    measured = retrieval.measure(retrieval.shards_of(paragraphs, count), some)
    assert measured.lists == one_shard.lists[: len(some)]


def test_the_index_finds_what_a_full_scan_finds(dev: squad.QuestionSet, paragraphs: retrieval.Split) -> None:
    few = paragraphs[:60]
    (shard,) = retrieval.shards_of(few, 1)
    passages = [
        (keys.passage(retrieval.CORPUS, paragraph.id, n), paragraph.title.replace("_", " "), passage.text)
        for paragraph, found in few
        for n, passage in enumerate(found)
    ]
    for question in dev.questions[:15]:
        asked = query(question.text)
        assert shard.rank(asked, shard.statistics(asked), 50) == exact.rank(passages, asked, 50)
