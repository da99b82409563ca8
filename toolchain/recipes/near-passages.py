"""Writes build/near-passages.json.gz for readers' groups: of each question learnt from, the passages of its corpus that
rank best, by words and vectors together, and do not answer it.

    .venv/bin/python toolchain/recipes/near-passages.py

A source with many passages asked is a corpus; the others are one. Twins of its own are left out: they may answer too.
"""

import gzip
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import bm25s
import numpy as np
import questions
import typer
from numpy.typing import NDArray
from Stemmer import Stemmer

from shardqa.keys import normalise_question
from shardqa.models import embedding, shipped
from shardqa.models.embedding import PassageRow
from shardqa.models.reader import Row
from shardqa.models.session import open_session
from shardqa.models.tokenizer import Tokenizer

ASKED = 100  # passages of a source that are asked, from which it is a corpus
UNASKED = 700  # passages of a corpus that are not asked, at most
NEAR = 12  # passages of a question


def corpora() -> Iterator[tuple[list[questions.Record], list[questions.Record]]]:
    """The passages of each that are asked, and all."""
    learnt = [one for one in questions.records() if not questions.is_held_out(one)]
    unlearnt = [one for one in questions.pool() if not questions.is_held_out(one)]
    counts = Counter(one["source"] for one in learnt)
    asked, unasked = defaultdict[str, list[questions.Record]](list), defaultdict[str, list[questions.Record]](list)
    for by_corpus, records in ((asked, learnt), (unasked, unlearnt)):
        for one in records:
            by_corpus[one["source"] if counts[one["source"]] >= ASKED else "others"].append(one)
    for name, own in asked.items():
        others = random.Random(1).sample(unasked[name], min(UNASKED, len(unasked[name])))
        yield own, list({one["text"]: one for one in [*others, *own]}.values())


class Encoder:
    """The shipped sentence encoder."""

    def __init__(self) -> None:
        self.tokenizer, self.session = (
            Tokenizer.load(shipped.encoder_folder()),
            open_session(shipped.encoder_folder(), 1),
        )

    def passage_vector(self, title: str, text: str) -> NDArray[np.float32]:
        return self._vector(PassageRow.of(self.tokenizer, title, text).row)

    def question_vector(self, question: str) -> NDArray[np.float32]:
        return self._vector(embedding.row(self.tokenizer.question(question)))

    def _vector(self, row: Row) -> NDArray[np.float32]:
        (vector,) = self.session.run([embedding.OUTPUT], row.feeds())
        return np.asarray(vector[0], np.float32)


def ranks(encoder: Encoder, corpus: list[questions.Record], asked: list[str]) -> NDArray[np.int64]:
    """Numbers of the passages that rank best for each question, [questions, NEAR + 2], by words and by vectors."""
    index = bm25s.BM25()
    stemmer, quiet = Stemmer("english"), {"show_progress": False}
    index.index(bm25s.tokenize([f"{one['title']} {one['text']}" for one in corpus], stemmer=stemmer, **quiet), **quiet)
    words = bm25s.tokenize(asked, stemmer=stemmer, return_ids=False, **quiet)
    passages = np.stack([encoder.passage_vector(one["title"], one["text"]) for one in corpus])
    likeness = np.stack([encoder.question_vector(one) for one in asked]) @ passages.T
    scores = np.stack([index.get_scores(one) if one else np.zeros(len(corpus)) for one in words])
    fused = 2 / (5 + places(likeness)) + 1 / (5 + places(scores))
    return np.argsort(-fused)[:, : NEAR + 2]


def places(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The place from 0 of each score in its row, the best first."""
    return np.argsort(np.argsort(-scores, axis=1), axis=1)


def main(out: Annotated[Path, typer.Option(help="The file.")] = Path("build/near-passages.json.gz")) -> None:
    """Write the file."""
    encoder, passages, near = Encoder(), list[questions.Record](), dict[str, list[int]]()
    for records, corpus in corpora():
        first = len(passages)
        passages += corpus
        pairs = [(one, entry) for one in records for entry in one["questions"] if entry["kind"] != "absent"]
        best = ranks(encoder, corpus, [normalise_question(entry["question"]) for _, entry in pairs])
        for (record, entry), numbers in zip(pairs, best.tolist(), strict=True):
            others = [n for n in numbers if not questions.are_twins(corpus[n]["text"], record["text"])]
            near[entry["question"]] = [first + n for n in others[:NEAR]]
        print(len(corpus), len(near), flush=True)
    of: dict[str, Any] = {
        "near": near,
        "passages": [{name: one[name] for name in ("text", "title", "path")} for one in passages],
    }
    with gzip.open(out, "wt", encoding="utf-8") as file:
        json.dump(of, file)


if __name__ == "__main__":
    typer.run(main)
