"""`shardqa-models measure-evidence`: how near the sentences that a reader shows are to those that people marked."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table
from shardqa.engine import parts
from shardqa.models import shipped
from shardqa_toolchain import evidence_metrics
from shardqa_toolchain.cli import marked_texts
from shardqa_toolchain.cli.marked_texts import MarkedTexts, spread
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.evidence_metrics import EvidenceCounts, EvidenceScores
from shardqa_toolchain.intervals import Interval

COLUMNS = ("file", "rows", "precision", "recall", "word F1", "IoU F1", "containment F1", "over the other reader")
Counted = dict[str, list[EvidenceCounts]]  # by file


def measure_evidence(
    files: Annotated[
        list[Path],
        typer.Argument(help="Evidence lines, as docs/models.md has them; .gz too."),
    ],
    reader: Annotated[
        Path | None, typer.Option("--reader", help="Folder of the reader; without it, the shipped one.")
    ] = None,
    against: Annotated[Path | None, typer.Option("--against", help="Another reader to compare it with.")] = None,
    split: Annotated[
        Literal["train", "dev"] | None, typer.Option("--split", help="Rows of this split alone.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Rows of each file, evenly spread.", show_default=False)
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of the network.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Word precision, recall and F1 of the sentences shown against marked ones, over all rows; no cluster is needed.

    Each text is read as a document of its own; the sentences that are worth showing are shown, in four parts at most.
    With --against, the difference of word F1 has its 95 % interval (paired bootstrap).

    Example: shardqa-models measure-evidence manual.jsonl --against models/reader-v4-int8
    """
    rows = {file.name: spread(file, split, limit) for file in files}
    after = _counted(reader or shipped.folder(), rows, threads)
    before = _counted(against, rows, threads) if against else None
    scores = {name: evidence_metrics.summed(counts) for name, counts in after.items()}
    if len(scores) > 1:
        scores["mean"] = evidence_metrics.mean(list(scores.values()))
    intervals = {name: evidence_metrics.compared(before[name], after[name]) for name in after} if before else {}
    if as_json:
        shares = {name: asdict(one) for name, one in scores.items()}
        print_json({"scores": shares, "compared": {name: asdict(one) for name, one in intervals.items()}})
        return
    columns = COLUMNS if intervals else COLUMNS[:-1]
    print_table(columns, [_row(name, one, intervals.get(name))[: len(columns)] for name, one in scores.items()])


def _counted(folder: Path, rows: dict[str, list[EvidenceRecord]], threads: int) -> Counted:
    texts = MarkedTexts(folder, threads)
    return {
        name: [
            _compare(record, parts.likely(marked_texts.sentences(reply)))
            for record, reply in zip(records, texts.read(records, name), strict=True)
        ]
        for name, records in rows.items()
    }


def _compare(record: EvidenceRecord, best: Sequence[parts.Excerpt]) -> EvidenceCounts:
    return evidence_metrics.counted(record.context, [(one.start, one.end) for one in best], record.spans)


def _row(name: str, scores: EvidenceScores, interval: Interval | None) -> tuple[str, ...]:
    shares = (scores.precision, scores.recall, scores.f1, scores.iou_f1, scores.containment_f1)
    return (name, str(scores.rows), *(f"{share:.1f}" for share in shares), str(interval or ""))
