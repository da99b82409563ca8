"""`shardqa-models measure-lists`: how near the lists that a reader makes are to items that people marked."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy import float64
from numpy.typing import NDArray

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table
from shardqa.engine import merging, parts
from shardqa.errors import BadData
from shardqa.models import shipped
from shardqa.models.reading_record import ShardReading
from shardqa.models.scoring import Ranks
from shardqa_toolchain import evidence_lines, list_metrics, squad
from shardqa_toolchain.cli.marked_texts import MarkedTexts, spread
from shardqa_toolchain.evidence_lines import EvidenceRecord
from shardqa_toolchain.intervals import Interval
from shardqa_toolchain.list_metrics import ListScores

COLUMNS = ("file", "rows", "precision", "recall", "partial F1", "exact F1", "over the other reader")


def measure_lists(
    files: Annotated[
        list[Path],
        typer.Argument(help="MultiSpanQA's JSON, or JSON lines whose spans are items, as of measure-evidence."),
    ],
    reader: Annotated[
        Path | None, typer.Option("--reader", help="Folder of the reader; without it, the shipped one.")
    ] = None,
    against: Annotated[Path | None, typer.Option("--against", help="Another reader to compare it with.")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Rows of each file, evenly spread.", show_default=False)
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of the network.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Partial-match and exact-match F1 of the items of lists, as MultiSpanQA counts; no cluster is needed.

    Each text is read as a document of its own, and the list is what `--form list` would answer.

    Example: shardqa-models measure-lists MultiSpanQA_data/valid.json
    """
    rows = {file.name: _records(file, limit) for file in files}
    after = _counted(reader or shipped.folder(), rows, threads)
    before = _counted(against, rows, threads) if against else None
    scores = {name: list_metrics.summed(counts) for name, counts in after.items()}
    intervals = {name: list_metrics.compared(before[name], after[name]) for name in after} if before else {}
    if as_json:
        shares = {name: asdict(one) for name, one in scores.items()}
        print_json({"scores": shares, "compared": {name: asdict(one) for name, one in intervals.items()}})
        return
    columns = COLUMNS if intervals else COLUMNS[:-1]
    print_table(columns, [_row(name, one, intervals.get(name))[: len(columns)] for name, one in scores.items()])


def _row(name: str, scores: ListScores, interval: Interval | None) -> tuple[str, ...]:
    shares = (f"{share:.1f}" for share in (scores.precision, scores.recall, scores.f1, scores.exact_f1))
    return (name, str(scores.rows), *shares, str(interval or ""))


def _counted(folder: Path, rows: dict[str, list[EvidenceRecord]], threads: int) -> dict[str, list[NDArray[float64]]]:
    texts = MarkedTexts(folder, threads)
    return {
        name: [
            list_metrics.counted(_items(reply, record.question), [record.context[a:b] for a, b in record.spans])
            for record, reply in zip(records, texts.read(records, name), strict=True)
        ]
        for name, records in rows.items()
    }


def _items(reply: ShardReading | None, question: str) -> list[str]:
    spans = merging.scored([reply], question, Ranks([1.0], 1)) if reply else []
    return [item.text for item in parts.items(spans)] if spans else []


def _records(file: Path, limit: int | None) -> list[EvidenceRecord]:
    """Raises BadData for what is neither form."""
    if evidence_lines.is_lines(file):
        return spread(file, None, limit)
    try:
        records = [_of_tokens(**entry) for entry in json.loads(squad.read_text(file))["data"]]
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise BadData(f"{file} can't be read as MultiSpanQA's JSON: {error!r}; name its valid.json") from None
    count = min(limit or len(records), len(records))
    return [records[n * len(records) // count] for n in range(count)]


def _of_tokens(id: str, question: list[str], context: list[str], label: list[str], **_: Any) -> EvidenceRecord:
    return EvidenceRecord(id, " ".join(question), "", " ".join(context), tuple(_marked(context, label)))


def _marked(tokens: list[str], labels: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the characters of each marked item: B is its first token, I each further one, O none."""
    start = end = at = 0
    for token, label in zip(tokens, labels, strict=True):
        if label != "I" and end:
            yield start, end
            end = 0
        if label == "B":
            start = at
        if label != "O":
            end = at + len(token)
        at += len(token) + 1
    if end:
        yield start, end
