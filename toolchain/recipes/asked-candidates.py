"""Writes candidates of the sources that training held out, for `shardqa-models calibrate`, a file for each.

    .venv/bin/python toolchain/recipes/asked-candidates.py build/reader-v4-int8 --out build/candidates

A source's passages are a corpus, each a document of its own. Its questions are asked of it, those with an answer once
more without their passage; the questions that their passage does not answer count as absent. An answer is the exact
words, and the sentences that hold them.
"""

import random
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import questions
import typer

from shardqa.models import shipped
from shardqa_toolchain import squad
from shardqa_toolchain.cli import candidates
from shardqa_toolchain.cli.candidates import Sample


def sample(source: str, records: list[questions.Record], limit: int) -> Sample:
    passages = [one for one in questions.pool() if str(one["source"]).startswith(source)]
    texts = {one["text"]: one["title"] for one in [*passages, *records]}
    ids = {text: str(n) for n, text in enumerate(texts)}
    kinds = defaultdict[str, list[squad.SquadQuestion]](list)
    for record in records:
        for n, entry in enumerate(record["questions"]):
            spans = [entry["span"]] if entry.get("span") else []
            places = [*spans, *(record["sentences"][number] for number in entry.get("sentences", ()))]
            answers = tuple(record["text"][start:end] for start, end in places)
            document = ids[record["text"]] if answers else None
            kinds[entry["kind"]].append(
                squad.SquadQuestion(f"{record['id']}/{n}", entry["question"], answers, document)
            )
    dice = random.Random(0)
    entries = [one for kind in sorted(kinds) for one in dice.sample(kinds[kind], min(limit, len(kinds[kind])))]
    documents = [(ids[text], title, text) for text, title in texts.items()]
    return Sample(documents, entries, source.partition("/")[0], absent=True)


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of an ONNX reader.")],
    out: Annotated[Path, typer.Option(help="Folder of the files written.")] = Path("build/candidates"),
    limit: Annotated[int, typer.Option(help="Questions of each kind and source.")] = 80,
    k: Annotated[int, typer.Option(help="Passages read for a question.")] = 13,
) -> None:
    """Write a file for each source."""
    out.mkdir(parents=True, exist_ok=True)
    records = [one for one in questions.records() if questions.is_held_out(one)]
    for source in questions.HELD_OUT:
        own = [one for one in records if str(one["source"]).startswith(source)]
        file = out / f"{source.partition('/')[0]}.jsonl"
        print(
            source,
            candidates.write([sample(source, own, limit)], folder, file, k, 1, shipped.encoder_folder()),
            flush=True,
        )


if __name__ == "__main__":
    typer.run(main)
