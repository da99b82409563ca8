"""Measures a reader on questions as people ask them, of the sources that training held out, each with its passage.

    .venv/bin/python toolchain/recipes/asked-figures.py models/reader-v4-int8 --step 4

Of each kind of question: AUROC of those that the passage answers against the passages' absent questions, by margin (the
best span's logit less the null's) and by relevance; and how often the sentence of most evidence is one that answers.
"""

from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import questions
import typer

from shardqa.models.reader import RowLogits, best_spans, join, null_logit
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer

HEADING = 48  # word pieces before a passage, as shards read it


def auroc(right: list[float], wrong: list[float]) -> float:
    """The share of pairs in which the right one is greater."""
    below = sum(np.searchsorted(np.sort(wrong), right, side) for side in ("left", "right"))
    return float(np.mean(below) / 2 / len(wrong))


class Figures:
    def __init__(self, folder: Path) -> None:
        self.tokenizer, self.session = Tokenizer.load(folder), ReaderSession(folder, 1)
        self.signals = defaultdict[tuple[str, str], list[float]](list)

    def ask(self, record: questions.Record) -> None:
        passage = self.tokenizer.passage(record["text"])
        path = (record.get("path") or "").split(" > ")[-1]
        heading = self.tokenizer.passage(f"{path}:").ids[:HEADING] if path else None
        rows = [join(self.tokenizer.question(one["question"]), passage.ids, heading) for one in record["questions"]]
        for entry, row, logits in zip(record["questions"], rows, self.session.read_all(rows), strict=True):
            best = best_spans(logits.start, logits.end, row.passage, 1)
            if not best or logits.relevance is None:
                continue
            margin = best[0].logit - null_logit(logits.start, logits.end)
            for name, value in (("margin", margin), ("relevance", logits.relevance)):
                self.signals[entry["kind"], name].append(value)
            if "sentences" in entry:
                right = self.best_sentence(logits.within(row.passage), passage.offsets, record) in entry["sentences"]
                self.signals[entry["kind"], "sentence"].append(right)

    def best_sentence(self, logits: RowLogits, offsets: Any, record: questions.Record) -> int:
        assert logits.evidence is not None
        inside = [(offsets[:, 0] < end) & (offsets[:, 1] > start) for start, end in record["sentences"]]
        return int(np.argmax([logits.evidence[one].mean() if one.any() else -np.inf for one in inside]))

    def show(self) -> None:
        for kind in ("text", "other", "aloud", "keywords"):
            areas = (auroc(self.signals[kind, one], self.signals["absent", one]) for one in ("margin", "relevance"))
            margin, relevance = areas
            sentence = 100 * np.mean(self.signals[kind, "sentence"])
            print(f"{kind:9} margin {margin:.3f}  relevance {relevance:.3f}  sentence {sentence:.0f} %")


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of an ONNX reader.")],
    step: Annotated[int, typer.Option(help="One of so many passages held out is asked.")] = 4,
) -> None:
    """Print a line for each kind."""
    figures = Figures(folder)
    for record in [one for one in questions.records() if questions.is_held_out(one)][::step]:
        figures.ask(record)
    figures.show()


if __name__ == "__main__":
    typer.run(main)
