"""Following of titles, and what it adds to ranking: recall on questions of several kinds, with it and without.

    python bench/bridges.py [--set hotpot --set search …] [--limit 2000] [--cache build/dense]

Every paragraph is a document, as in bench/dense.py, whose sets and vectors these are: with `--cache`, the folder that
it kept them in, ranks by words and vectors are shown, too. Of questions with two paragraphs both must be found.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from dense import AT, SETS, Need, read
from kept_vectors import KeptVectors
from retrieval import ranked

from shardqa import keys
from shardqa.analysis import query
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.statistics import QuestionVector

DEEP = 200  # passages whose documents are looked at


def main(
    sets: Annotated[list[str] | None, typer.Option("--set", help=f"some of {', '.join(SETS)}; all by default")] = None,
    limit: Annotated[int, typer.Option(help="questions of each set")] = 2_000,
    cache: Annotated[Path | None, typer.Option(help="folder of bench/dense.py's vectors")] = None,
) -> None:
    """Prints recall at 1, 5, 10 and 20."""
    tokenizer = Tokenizer.load(shipped.folder())
    for name in sets or SETS:
        pieces, questions = read(name, tokenizer, 2_000)
        index = Index()
        store = None if cache is None else KeptVectors(cache / f"{name}.json")
        for piece in pieces:
            key = keys.passage("bench", piece.document, piece.number)
            index.put(key, piece.title, piece.text)
            if store is not None:
                assert index.put_vectors(key, store.passage(piece.title, piece.text))
        asked = [store.question(one.question) if store is not None else None for one in questions]
        some = sorted(np.random.default_rng(7).permutation(len(questions))[:limit])
        print(f"{name}: {len(pieces):,} passages, {len(some):,} questions; recall@{'/'.join(map(str, AT))}")
        for label, has_vectors in (("words and graph", False), ("with vectors", True)):
            if has_vectors and cache is None:
                continue
            for is_bridged in (False, True):
                ranks = [_rank(index, questions[n], asked[n] if has_vectors else None, is_bridged) for n in some]
                row = [100 * np.mean(np.array(ranks) < at) for at in AT]
                print(
                    f"  {label + (', bridges' if is_bridged else ''):28}",
                    *(f"{value:6.1f}" for value in row),
                    flush=True,
                )


def _rank(index: Index, need: Need, near: QuestionVector | None, is_bridged: bool) -> int:
    """Returns the rank of the last document that is needed."""
    terms = query(keys.normalise_question(need.question))
    found = ranked([index], terms, DEEP, near, is_bridged)
    documents = list(dict.fromkeys(keys.parse_passage(key).document for key, _ in found))
    places = {name: n for n, name in enumerate(documents)}
    return max(places.get(name, DEEP) for name in need.documents)


if __name__ == "__main__":
    typer.run(main)
