"""Recall on real questions."""

from pathlib import Path

from bench import retrieval
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.metrics import recall_at
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad

QUESTIONS = 1_500  # every seventh of the file


def test_documents_are_found_as_well_as_bm25_on_whole_paragraphs_finds_them(shared: Path) -> None:
    dev, tokenizer = squad.read(shared / "data/squad/dev-v1.1.json.gz"), Tokenizer.load(shipped.folder())
    paragraphs = [(paragraph, split(paragraph.text, tokenizer)) for paragraph in dev.paragraphs]
    measured = retrieval.measure(retrieval.shards_of(paragraphs, 1), dev.questions[::7][:QUESTIONS])
    # All 10,570 questions: 80.9, 93.9, 97.6; BM25 on whole paragraphs with titles: 76.8, 92.2, 96.9.
    assert recall_at(1, measured.ranks) >= 0.78
    assert recall_at(5, measured.ranks) >= 0.92
    assert recall_at(20, measured.ranks) >= 0.965
