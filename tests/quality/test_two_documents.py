"""Questions on `seeds/` that two documents answer together: one has the question's words, and names the other.

two_documents.jsonl: question, answers, and the documents in the order in which they are needed.
"""

import json
from pathlib import Path

import pytest

from bench import retrieval
from shardqa import keys
from shardqa.analysis import query
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer

SEEDS = Path(__file__).parents[2] / "seeds" / "documents"
QUESTIONS = [json.loads(line) for line in Path(__file__).with_name("two_documents.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def shards() -> list[Index]:
    tokenizer = Tokenizer.load(shipped.folder())
    shards = [Index() for _ in range(3)]
    for path in sorted(SEEDS.glob("*.md")):
        text = path.read_text()
        title = text.partition("\n")[0].removeprefix("# ")
        shard = shards[int(keys.bucket(path.name)[1:]) % 3]
        for n, passage in enumerate(split(text, tokenizer)):
            shard.put(keys.passage("seeds", path.name, n), title, passage.text, passage.end)
    return shards


def count_of_both(shards: list[Index], among: int, is_bridged: bool) -> int:
    """Questions whose two documents both have a passage among the first."""
    count = 0
    for one in QUESTIONS:
        asked = query(keys.normalise_question(one["question"]))
        found = retrieval.ranked(shards, asked, among, is_bridged=is_bridged)
        count += set(one["documents"]) <= {keys.parse_passage(key).document for key, _ in found}
    return count


def test_the_answer_stands_in_the_second_document() -> None:
    assert len(QUESTIONS) == len({one["question"] for one in QUESTIONS}) >= 20
    for one in QUESTIONS:
        first, second = ((SEEDS / name).read_text() for name in one["documents"])
        assert all(answer in second and answer not in first for answer in one["answers"]), one["id"]


def test_both_documents_are_among_the_first_passages(shards: list[Index]) -> None:
    # Of 21 questions, among the first 3 and 5 passages: 18 and 21; without bridges 12 and 17.
    assert count_of_both(shards, 3, is_bridged=True) >= 17
    assert count_of_both(shards, 5, is_bridged=True) >= 20
    assert count_of_both(shards, 3, is_bridged=False) <= 14, "the set no longer needs bridges"
