"""Prints how often a question's passage is first, and among eight, by words alone, among all passages of its language.

    .venv/bin/python toolchain/recipes/word-figures.py build/questions build/sets/th/iapp_test.jsonl

Each kind has its shares of 100.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import typer

from shardqa import analysis, keys
from shardqa.gears_functions.index.corpus_index import Index

FIRST = 8


def pairs(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Kind, question, title and passage, of our own files' records or of a public set's."""
    for record in map(json.loads, file.read_text("utf-8").splitlines()):
        if "context" in record:
            yield "set", record["question"], "", record["context"]
        for one in record.get("questions", ()):
            if one["kind"] != "absent":
                yield one["kind"], one["question"], record["title"], record["text"]


def main(files: list[Path]) -> None:
    """Print a line for each kind of each file; a folder stands for its files."""
    for file in (one for name in files for one in (sorted(name.glob("??.jsonl")) if name.is_dir() else [name])):
        index, places, kinds = Index(), dict[str, str](), defaultdict[str, list[float]](list)
        asked = list(pairs(file))
        for _, _, title, text in asked:
            key = places.setdefault(text, keys.passage("any", str(len(places)), 0))
            index.put(key, title, text)
        for kind, question, _, text in asked:
            query = analysis.query(keys.normalise_question(question))
            found = [key for key, _ in index.rank(query, index.statistics(query), FIRST)]
            kinds[kind].append(found.index(places[text]) if places[text] in found else np.inf)
        for kind, ranks in kinds.items():
            first, among = (100 * np.mean(np.array(ranks) < most) for most in (1, FIRST))
            print(f"{file.stem} {kind:8} {first:3.0f} {among:3.0f} of {len(ranks)}, {len(places)} passages")


if __name__ == "__main__":
    typer.run(main)
