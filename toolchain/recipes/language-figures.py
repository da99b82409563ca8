"""Says how well a reader reads each language: F1 and exact match on XQuAD, the right passage given.

    git clone https://github.com/google-deepmind/xquad build/xquad
    .venv/bin/python toolchain/recipes/language-figures.py build/reader-m1-int8 build/xquad

Chinese, Japanese and Thai put no blanks between words: there F1 is of letters. Nobody learns from XQuAD, nor from
translations of SQuAD's dev set, of which it is a part.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from shardqa.models import metrics
from shardqa_toolchain import measure

WITHOUT_BLANKS = ("zh", "ja", "th")


def f1_of_letters(answer: str, references: Sequence[str]) -> float:
    return metrics.f1(" ".join(answer), [" ".join(one) for one in references])


def main(
    reader: Annotated[Path, typer.Argument(help="Folder of a reader.")],
    folder: Annotated[Path, typer.Argument(help="Folder of xquad.LANG.json.")],
    limit: Annotated[int | None, typer.Option(help="Questions of a language; all unless given.")] = None,
) -> None:
    """Print a line for each language."""
    for file in sorted(folder.glob("xquad.*.json")):
        language = file.name.split(".")[1]
        f1 = f1_of_letters if language in WITHOUT_BLANKS else metrics.f1
        reads = list(measure.read_all(reader, file, limit, answerable=True))
        right = {
            "EM": [one.exact_match for one in reads],
            "F1": [f1(one.answer, one.question.answers) for one in reads],
        }
        figures = {name: round(100 * float(np.mean(values)), 1) for name, values in right.items()}
        print(json.dumps({"language": language, "questions": len(reads), **figures}), flush=True)


if __name__ == "__main__":
    typer.run(main)
