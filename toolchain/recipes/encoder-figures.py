"""Prints how often an encoder finds the passage of a question as people ask it, in the sources that training held out.

    .venv/bin/python toolchain/recipes/encoder-figures.py models/encoder-v2-int8

By vectors alone, among all passages of the question's source; MedQuAD is left out: no other passages of it are given.
"""

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import numpy as np
import questions
import typer
from numpy.typing import NDArray

from shardqa.models import embedding, shipped
from shardqa.models.reader import Row
from shardqa.models.session import open_session
from shardqa.models.tokenizer import Tokenizer

AT = (1, 5, 20)


def main(folder: Annotated[Path, typer.Argument(help="Folder of an ONNX encoder.")]) -> None:
    """Print recall at 1, 5 and 20 for each kind of question."""
    tokenizer, session = Tokenizer.load(shipped.folder()), open_session(folder, 1)

    def vector(row: Row) -> NDArray[np.float32]:
        vector = session.run([embedding.OUTPUT], row.feeds())[0][0].astype(np.float32)
        return np.asarray(vector / np.linalg.norm(vector))

    pool, held_out = questions.pool(), [one for one in questions.records() if questions.is_held_out(one)]
    places = defaultdict[str, list[int]](list)  # of a kind's questions: how many passages are nearer than their own
    for source in (one for one in questions.HELD_OUT if one != "MedQuAD"):
        own = [one for one in held_out if one["source"].startswith(source)]
        titles = {one["text"]: one["title"] for one in pool if one["source"].startswith(source)}
        titles |= {one["text"]: one["title"] for one in own}
        pieces = ((tokenizer.passage(title).ids, tokenizer.passage(text).ids) for text, title in titles.items())
        passages = np.stack([vector(embedding.passage_row(*pair)) for pair in pieces])
        numbers = {text: n for n, text in enumerate(titles)}
        for record in own:
            for entry in record["questions"]:
                near = passages @ vector(embedding.row(tokenizer.passage(entry["question"]).ids))
                places[entry["kind"]].append(int((near > near[numbers[record["text"]]]).sum()))
    for kind in ("text", "other", "aloud", "keywords"):
        shares = (100 * float(np.mean(np.array(places[kind]) < at)) for at in AT)
        print(f"{kind:9}", *(f"{share:6.1f}" for share in shares), f"of {len(places[kind])}")


if __name__ == "__main__":
    typer.run(main)
