"""Prints how often a question's passage is among the first five once the passages that rank best are read, in the
sources that training held out.

    .venv/bin/python toolchain/recipes/ranking-figures.py models/reader-v4-int8 --step 2

Ways of ordering the k passages: as they rank, by the reader's relevance, and by rank score (as a share of the best) and
relevance together, with the weight that finds most in the other sources. MedQuAD is left out: no other passages of it
are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import questions
import typer
from numpy.typing import NDArray

from shardqa.keys import normalise_question
from shardqa.models import shipped
from shardqa.models.reader import join
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.cli.candidates import Encoder, Library

KINDS = ("text", "other", "aloud", "keywords")
WEIGHTS = (0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2)  # of a logit of relevance, in shares of rank score
FIRST = 5


@dataclass(frozen=True, slots=True)
class Ranked:
    """A question's passages as they rank."""

    source: str
    kind: str
    own: int | None  # place of the passage that it was written to; None where that is not among them
    scores: NDArray[np.float64]  # shares of the best rank score
    relevance: NDArray[np.float64]

    def is_found(self, order: NDArray[np.float64]) -> bool:
        return self.own is not None and bool((order > order[self.own]).sum() < FIRST)


def ranked(
    source: str, records: Sequence[questions.Record], session: ReaderSession, encoder: Encoder, k: int
) -> list[Ranked]:
    library, documents = Library(Tokenizer.load(shipped.folder()), encoder), dict[str, str]()
    passages = [one for one in questions.pool() if str(one["source"]).startswith(source)]
    for n, (text, title) in enumerate({one["text"]: one["title"] for one in [*passages, *records]}.items()):
        documents[text] = str(n)
        library.add(str(n), title, text)
    replies = []
    for record in records:
        own = set(library.index.table.keys_of(documents[record["text"]]))
        for entry in (one for one in record["questions"] if one["kind"] in KINDS):
            question = normalise_question(entry["question"])
            keys, scores = zip(*library.rank(question, k), strict=True)
            ids = library.tokenizer.question(question)
            logits = session.read_all([join(ids, library.passages[key].ids) for key in keys])
            place = next((n for n, key in enumerate(keys) if key in own), None)
            relevance = np.array([one.relevance or 0.0 for one in logits])
            replies.append(Ranked(source, entry["kind"], place, np.array(scores) / scores[0], relevance))
    return replies


def share(questions: Sequence[Ranked], weight: float) -> float:
    return 100 * float(np.mean([one.is_found(one.scores + weight * one.relevance) for one in questions]))


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of an ONNX reader.")],
    k: Annotated[int, typer.Option(help="Passages read for a question.")] = 13,
    step: Annotated[int, typer.Option(help="One of so many passages held out is asked.")] = 1,
) -> None:
    """Print a line for each kind."""
    session, encoder = ReaderSession(folder, 1), Encoder(shipped.encoder_folder(), 1)
    held_out = [one for one in questions.records() if questions.is_held_out(one)][::step]
    sources = [one for one in questions.HELD_OUT if one != "MedQuAD"]
    replies = [
        reply
        for source in sources
        for reply in ranked(source, [one for one in held_out if one["source"].startswith(source)], session, encoder, k)
    ]
    weights: Mapping[str, float] = {
        source: max(WEIGHTS, key=lambda weight: share([one for one in replies if one.source != source], weight))
        for source in sources
    }
    print("weights", weights)
    for kind in KINDS:
        own = [one for one in replies if one.kind == kind]
        both = np.mean([one.is_found(one.scores + weights[one.source] * one.relevance) for one in own])
        relevance = np.mean([one.is_found(one.relevance) for one in own])
        figures = {"ranks": share(own, 0), "relevance": 100 * relevance, "both": 100 * both}
        print(f"{kind:9}", *(f"{way} {figure:5.1f}" for way, figure in figures.items()), f"of {len(own)}")


if __name__ == "__main__":
    typer.run(main)
