"""Rankings of an evaluation in the forms of TREC, and measured by ir_measures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Ranked(NamedTuple):
    """A question with its documents, best first."""

    question: str
    document: str  # that it is about
    scores: dict[str, float]

    @property
    def rank(self) -> int | None:
        """From 1; None where the document is not among them."""
        order = list(self.scores)
        return order.index(self.document) + 1 if self.document in order else None


def write(rankings: Sequence[Ranked], run: Path | None, qrels: Path | None) -> None:
    """Blanks, which part the columns, become underscores in ids."""
    if run is not None:
        lines = [
            f"{_id(one.question)} Q0 {_id(document)} {rank} {score:.6f} shardqa"
            for one in rankings
            for rank, (document, score) in enumerate(one.scores.items(), 1)
        ]
        run.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if qrels is not None:
        lines = [f"{_id(one.question)} 0 {_id(one.document)} 1" for one in rankings]
        qrels.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measured(rankings: Sequence[Ranked], measures: str) -> dict[str, Any]:
    """By ir_measures' names, like `nDCG@10`. Raises BadData for a name that is none."""
    import ir_measures

    from shardqa.errors import BadData

    try:
        parsed = [ir_measures.parse_measure(name) for name in measures.split()]
    except (NameError, ValueError, TypeError, SyntaxError) as fault:
        raise BadData(f"--measures {measures!r}: {fault}; names are as in 'nDCG@10 AP RR'") from None
    qrels = {_id(one.question): {_id(one.document): 1} for one in rankings}
    run = {_id(one.question): {_id(name): score for name, score in one.scores.items()} for one in rankings}
    return {str(name): round(value, 4) for name, value in ir_measures.calc_aggregate(parsed, qrels, run).items()}


def _id(text: str) -> str:
    return "_".join(text.split()) or "_"
