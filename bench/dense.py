"""Vectors beside words in ranking, and how heavily they should weigh: recall on questions of several kinds.

    python bench/dense.py [--cache FOLDER] [--set search --set hotpot …] [--limit 2000]

Vectors are kept: the passages of SQuAD take half an hour of a core. For each set: recall of words, vectors, and
their sum with several weights, and the weight that the other sets would have chosen. Every paragraph is a document, as
in bench/retrieval.py; of questions with two paragraphs (hotpot) both must be found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from common import SHARED
from kept_vectors import KeptVectors
from numpy.typing import NDArray

from shardqa import keys
from shardqa.analysis import query
from shardqa.gears_functions.index import bm25, vectors
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad

SETS = {
    "squad": ("squad/dev-v1.1", "squad/train-v1.1"),  # asked: dev's questions; train's paragraphs are there beside
    "search": ("domains/qed-nq", "domains/clapnq"),
    "hotpot": ("domains/hotpotqa-sub",),
    "policies": ("domains/policyqa-dev",),
    "reports": ("domains/tatqa-text",),
    "stories": ("domains/fairytaleqa",),
}
WEIGHTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
AT = (1, 5, 10, 20)
DEEP = 200  # passages by words, and as many by vectors, whose sums are looked at


@dataclass(frozen=True, slots=True)
class Need:
    question: str
    documents: tuple[str, ...]  # that say it; all of them are needed


@dataclass(frozen=True, slots=True)
class Piece:
    document: str
    number: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one question's best passages."""

    idf: float  # of the question

    words: NDArray[np.float64]
    cosines: NDArray[np.float64]
    documents: list[str]
    needed: tuple[str, ...]


def read(name: str, tokenizer: Tokenizer, limit: int) -> tuple[list[Piece], list[Need]]:
    texts: dict[str, tuple[str, str]] = {}
    questions: list[Need] = []
    for file in SETS[name]:
        source, stem = squad.read(SHARED / "data" / f"{file}.json.gz"), Path(file).name
        of = {one.id: list(_documents(stem, one, name == "hotpot")) for one in source.paragraphs}
        texts |= {id: (title, text) for parts in of.values() for id, title, text in parts}
        if "train" not in stem:
            questions += [
                Need(one.text, tuple(id for id, _, _ in of[one.document or ""]))
                for one in source.questions
                if one.answers
            ]
    sample = np.random.default_rng(7).permutation(len(questions))[:limit]
    pieces = [
        Piece(id, n, title, passage.text)
        for id, (title, text) in texts.items()
        for n, passage in enumerate(split(text, tokenizer))
    ]
    return pieces, [questions[n] for n in sorted(sample)]


def _documents(stem: str, paragraph: squad.Paragraph, has_two: bool) -> Iterator[tuple[str, str, str]]:
    """(id, title, text); HotpotQA's paragraphs stand together, a line each that begins with its title."""
    if not has_two:
        yield f"{stem}/{paragraph.id}", paragraph.title.replace("_", " "), paragraph.text
        return
    for line in filter(str.strip, paragraph.text.split("\n")):
        title, _, text = line.partition(": ")
        yield title, title, text


def scores(pieces: Sequence[Piece], needs: Sequence[Need], store: KeptVectors) -> list[Scores]:
    index, names = Index(), [piece.document for piece in pieces]
    for piece in pieces:
        key = keys.passage("bench", piece.document, piece.number)
        index.put(key, piece.title, piece.text)
        index.put_vectors(key, store.passage(piece.title, piece.text))
    store.save()
    scores = []
    for need in needs:
        terms = query(keys.normalise_question(need.question))
        words = np.zeros(len(pieces))
        for key, score in index.rank(terms, index.statistics(terms), len(pieces)):
            words[index.table.slots[key]] = score
        asked = store.question(need.question)
        cosines = index.table.vectors.cosines(asked.encoder, asked.vector, len(pieces))
        best = np.union1d(np.argsort(-words)[:DEEP], np.argsort(-cosines)[:DEEP])
        scores.append(
            Scores(
                bm25.total_idf(terms, index.statistics(terms)),
                words[best],
                cosines[best],
                [names[n] for n in best],
                need.documents,
            )
        )
    return scores


def recalls(scored: Sequence[Scores], score: Callable[[Scores], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Returns the shares of the questions whose documents all are among the first, at each of AT."""
    ranks = []
    for one in scored:
        order = np.argsort(-score(one), kind="stable")
        documents = {name: n for n, name in reversed(list(enumerate(dict.fromkeys(one.documents[n] for n in order))))}
        ranks.append(max(documents.get(name, len(order)) for name in one.needed))
    return np.array([100 * np.mean(np.array(ranks) < at) for at in AT])


def summed(weight: float) -> Callable[[Scores], NDArray[np.float64]]:
    near = weight / vectors.COSINE_WEIGHT
    return lambda one: vectors.word_score(one.words, one.idf) + near * vectors.near_score(one.cosines, one.idf)


def main(
    cache: Annotated[Path, typer.Option(help="folder of vectors that are kept")] = Path("build/dense"),
    sets: Annotated[list[str] | None, typer.Option("--set", help=f"some of {', '.join(SETS)}; all by default")] = None,
    limit: Annotated[int, typer.Option(help="questions of each set")] = 2_000,
) -> None:
    """Prints recall at 1, 5, 10 and 20."""
    tokenizer = Tokenizer.load(shipped.folder())
    table: dict[str, NDArray[np.float64]] = {}
    for name in sets or SETS:
        pieces, questions = read(name, tokenizer, limit)
        found = scores(pieces, questions, KeptVectors(cache / f"{name}.json"))
        print(f"{name}: {len(pieces):,} passages, {len(questions):,} questions; recall@{'/'.join(map(str, AT))}")
        table[name] = np.stack([recalls(found, summed(weight)) for weight in WEIGHTS])
        _show("words and graph", table[name][0])
        _show("vectors alone", recalls(found, lambda one: one.cosines))
        for weight, row in zip(WEIGHTS[1:], table[name][1:], strict=True):
            _show(f"sum, weight {weight:g}", row)
    if len(table) > 1:
        _left_out(table)


def _left_out(table: dict[str, NDArray[np.float64]]) -> None:
    print("weight by the mean of recall@1 and @5 over the other sets, and what it gives")
    for name, own in table.items():
        gains = [rows[:, :2].mean(axis=1) - rows[0, :2].mean() for other, rows in table.items() if other != name]
        best = int(np.argmax(np.mean(gains, axis=0)))
        _show(f"{name}, weight {WEIGHTS[best]:g}", own[best])


def _show(label: str, row: NDArray[np.float64]) -> None:
    print(f"  {label:24}", *(f"{value:6.1f}" for value in row), flush=True)


if __name__ == "__main__":
    typer.run(main)
