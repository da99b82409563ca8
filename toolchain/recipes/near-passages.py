"""Writes build/near-passages.json.gz for reader-v4.py: of each question learnt from, the passages of its corpus that
rank best, by words and vectors as shards rank them, and do not answer it.

    .venv/bin/python toolchain/recipes/near-passages.py          # 21 minutes of two cores

A source with many passages asked is a corpus; the others are one. Twins of its own are left out: they may answer too.
"""

import gzip
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import questions
import typer

from shardqa.keys import normalise_question
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain.cli.candidates import Encoder, Library

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


def main(out: Annotated[Path, typer.Option(help="The file.")] = Path("build/near-passages.json.gz")) -> None:
    """Write the file."""
    encoder, passages, near = Encoder(shipped.encoder_folder(), 2), list[questions.Record](), dict[str, list[int]]()
    for records, corpus in corpora():
        library, first = Library(Tokenizer.load(shipped.folder()), encoder), len(passages)
        passages += corpus
        for n, one in enumerate(corpus, first):
            library.add(str(n), one["title"], one["text"])
        numbers = {key: n for n in range(first, len(passages)) for key in library.index.table.keys_of(str(n))}
        for record in records:
            for entry in (one for one in record["questions"] if one["kind"] != "absent"):
                ranks = library.rank(normalise_question(entry["question"]), NEAR + 2)
                others = dict.fromkeys(numbers[key] for key, _ in ranks)
                near[entry["question"]] = [
                    n for n in others if not questions.are_twins(passages[n]["text"], record["text"])
                ][:NEAR]
        print(len(corpus), len(near), flush=True)
    of: dict[str, Any] = {
        "near": near,
        "passages": [{name: one[name] for name in ("text", "title", "path")} for one in passages],
    }
    with gzip.open(out, "wt", encoding="utf-8") as file:
        json.dump(of, file)


if __name__ == "__main__":
    typer.run(main)
