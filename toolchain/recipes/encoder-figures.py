"""Prints how often an encoder finds the passage of a question as people ask it, in the sources that training held out.

    .venv/bin/python toolchain/recipes/encoder-figures.py models/encoder-v2-int8

By vectors alone, those of passages' parts as well, among all passages of the question's source; MedQuAD is left out: no
other passages of it are given.
"""

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import numpy as np
import questions
import typer
from numpy.typing import NDArray

from shardqa.models.embedding import HALF, LEVELS
from shardqa_toolchain.cli.candidates import Encoder

AT = (1, 5, 20)


def main(folder: Annotated[Path, typer.Argument(help="Folder of an ONNX encoder.")]) -> None:
    """Print recall at 1, 5 and 20 for each kind of question."""
    encoder = Encoder(folder, 1)

    def vectors(stored: bytes) -> NDArray[np.float32]:
        both = np.frombuffer(stored, np.uint8).reshape(-1, HALF)
        levels = 2.0 * np.hstack([both & (LEVELS - 1), both >> 4]) - (LEVELS - 1)
        return np.asarray(levels / np.linalg.norm(levels, axis=1, keepdims=True), np.float32)

    pool, held_out = questions.pool(), [one for one in questions.records() if questions.is_held_out(one)]
    places = defaultdict[str, list[int]](list)  # of a kind's questions: how many passages are nearer than their own
    for source in (one for one in questions.HELD_OUT if one != "MedQuAD"):
        own = [one for one in held_out if one["source"].startswith(source)]
        titles = {one["text"]: one["title"] for one in pool if one["source"].startswith(source)}
        titles |= {one["text"]: one["title"] for one in own}
        parts = [vectors(encoder.passage(title, text).vectors) for text, title in titles.items()]
        firsts, passages = np.cumsum([0, *map(len, parts[:-1])]), np.concatenate(parts)
        numbers = {text: n for n, text in enumerate(titles)}
        for record in own:
            for entry in record["questions"]:
                question = np.frombuffer(encoder.question(entry["question"]).vector, np.int8).astype(np.float32)
                near = np.maximum.reduceat(passages @ question, firsts)
                places[entry["kind"]].append(int((near > near[numbers[record["text"]]]).sum()))
    for kind in ("text", "other", "aloud", "keywords"):
        shares = (100 * float(np.mean(np.array(places[kind]) < at)) for at in AT)
        print(f"{kind:9}", *(f"{share:6.1f}" for share in shares), f"of {len(places[kind])}")


if __name__ == "__main__":
    typer.run(main)
