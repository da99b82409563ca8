"""Makes build/encoder-m1: multilingual-e5-small trained on, so that a question finds its passage in other words and in
other languages. What it reads, and the start, are reader-m1's (reader-m1.py says where they come from). The table of
words stays as it is.

    OMP_NUM_THREADS=1 .venv/bin/python toolchain/recipes/encoder-m1.py --minutes 90
    .venv/bin/shardqa-models encoder build/encoder-m1 --out build/encoder-m1-int8

After 146 steps, 21 minutes of a core, 57 of the 96 questions of bench/languages.py are answered right and 19 of 24
refused; after 566 steps, 121 minutes, 57 and 23, with the same reader and lines.
"""

import importlib
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

english: Any = importlib.import_module("encoder-v2")
reader: Any = importlib.import_module("reader-m1")

LIMIT = 1_800  # pairs of a public set


def pairs() -> dict[str, list[Any]]:
    """Those of English, and by language those of public sets, a passage once, and our own."""
    groups = english.pairs()
    for folder in filter(Path.is_dir, sorted(reader.SETS.iterdir())):
        records = reader.set_records(folder)[:LIMIT]
        asked = [(one["questions"][0]["question"], one["title"], one["text"], one["text"]) for one in records]
        groups[f"sets/{folder.name}"] = asked
    for file in sorted(reader.OWN.glob("*.jsonl")):
        for record in reader.whole_lines(file):
            for one in record["questions"]:
                pair = one["question"], record["title"], record["text"], record["id"]
                groups[f"own/{file.stem}"] += [pair] * english.REPEATS.get(one["kind"], 0)
    return groups


def main(
    minutes: float = typer.Option(90.0, help="Time of the whole run, over all commands."),
    start: Annotated[Path, typer.Option(help="The checkpoint to begin at.")] = Path("build/e5-m"),
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("build/encoder-m1"),
) -> None:
    """Train, and write the checkpoint."""
    work = out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    groups = pairs()  # before the time begins
    run = english.Training(start, work, minutes)
    run.network.embeddings.word_embeddings.requires_grad_(False)
    english.train(run, groups, start, out)


if __name__ == "__main__":
    typer.run(main)
