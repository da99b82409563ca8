"""`shardqa-models export`, `quantize`, `dequantize` and `verify`: what a person gives, and the verdict shown."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.models.scoring import SCORING_FILE
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from shardqa_toolchain.conversion.checked import Check
    from shardqa_toolchain.conversion.verify import Verdict


class Tolerance(StrEnum):
    float = "float"
    quantized = "quantized"


FolderArgument = Annotated[Path, typer.Argument(help="Folder of a BERT, DistilBERT or ELECTRA checkpoint.")]
OutOption = Annotated[Path, typer.Option("--out", help="New folder to write to.")]
QuestionsOption = Annotated[
    Path | None,
    typer.Option(
        "--questions", help="SQuAD file to compare on; questions of seeds/ or random wordpieces unless given."
    ),
]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Questions drawn from it; all unless given.", min=1)]
KeepOption = Annotated[bool, typer.Option("--keep-failing", help="Keep a result that does not pass the comparison.")]


def export(
    folder: FolderArgument,
    out: OutOption,
    questions: QuestionsOption = None,
    limit: LimitOption = None,
    keep_failing: KeepOption = False,
    torchscript: Annotated[bool, typer.Option("--torchscript", help="Also write it as model.pt, for torch.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a checkpoint's reader as ONNX, float32, for rows of any number and length.

    The result is compared with the checkpoint; one that answers otherwise is thrown away.

    Example: shardqa-models export my-reader --out my-reader-onnx
    """
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion import export as exporting

    verdict = exporting.export(folder, out, _check(questions, limit, keep_failing))
    if torchscript:
        need("torch")
        exporting.write_torchscript(folder, out / "model.pt")
    _report(verdict, out, as_json)


def quantize(
    folder: FolderArgument,
    out: OutOption,
    questions: QuestionsOption = None,
    limit: LimitOption = None,
    keep_failing: KeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a checkpoint's reader in int8: a quarter of the size and half the time.

    The result is compared with the checkpoint; one that answers otherwise is thrown away.

    Example: shardqa-models quantize my-reader --out my-reader-int8
    """
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion import quantize as quantizing

    _report(quantizing.quantize(folder, out, _check(questions, limit, keep_failing)), out, as_json)
    if not as_json and not (out / SCORING_FILE).exists():
        say(f"next: shardqa-models candidates {out} --squad FILE --out found.jsonl, from which its scores are fitted")


def dequantize(
    folder: Annotated[Path, typer.Argument(help="Folder of an int8 reader that `quantize` wrote.")],
    out: OutOption,
    questions: QuestionsOption = None,
    limit: LimitOption = None,
    keep_failing: KeepOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take an int8 reader back to a checkpoint, to train on or convert anew; what int8 rounded stays rounded.

    Example: shardqa-models dequantize models/reader-v4-int8 --out build/reader-v4-0
    """
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion import dequantize as dequantizing

    _report(dequantizing.dequantize(folder, out, _check(questions, limit, keep_failing)), out, as_json)


def verify(
    a: Annotated[Path, typer.Argument(metavar="A", help="The reference: a folder, or an ONNX file.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The model to compare with it.")],
    questions: QuestionsOption = None,
    limit: LimitOption = None,
    threshold: Annotated[
        Tolerance | None,
        typer.Option("--threshold", help="Thresholds to apply; by the type of B unless given."),
    ] = None,
    f1_loss: Annotated[float | None, typer.Option("--f1-loss", help="F1 that B may lose, in percent.", min=0)] = None,
    threads: Annotated[int, typer.Option("--threads", help="Threads of each network.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Compare two models on the same inputs: differences of logits, agreement of spans, EM, F1, a verdict.

    Exit code 1 when B does not pass.

    Example: shardqa-models verify my-reader my-reader-int8 --questions dev-v1.1.json.gz --limit 500
    """
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion import verify as verifying

    by_name = {Tolerance.float: verifying.FLOAT, Tolerance.quantized: verifying.QUANTIZED}
    thresholds = by_name[threshold] if threshold else verifying.thresholds_for(b)
    if f1_loss is not None:
        thresholds = replace(thresholds, f1_loss=f1_loss)
    _report(verifying.verify(a, b, questions, limit, thresholds, threads), None, as_json)


def _check(questions: Path | None, limit: int | None, keep_failing: bool) -> Check:
    from shardqa_toolchain.conversion.checked import Check

    return Check(questions, limit, keep_failing)


def _report(verdict: Verdict, out: Path | None, as_json: bool) -> None:
    """Print the verdict; exit code 1 when it is against B."""
    if as_json:
        print_json(verdict.as_json())
    else:
        print_table(("compared", "A", "B"), _rows(verdict))
        for failure in verdict.failures:
            say(failure)
        say(f"{'passed' if verdict.passed else 'failed'}{f'; wrote {out}' if out else ''}")
    if not verdict.passed:
        raise typer.Exit(1)


def _rows(verdict: Verdict) -> list[tuple[str, str, str]]:
    rows = [
        ("inputs", verdict.inputs, "the same"),
        ("largest difference of a logit", "", f"{verdict.largest_difference:.3g}"),
        ("mean difference of the logits", "", f"{verdict.mean_difference:.3g}"),
        ("the same, root mean square, in spreads", "", f"{verdict.error:.3g}"),
    ]
    if verdict.span_agreement is not None:
        rows.append(("best spans that agree, %", "", f"{verdict.span_agreement:.1f}"))
    for name, pair in (("EM", verdict.exact_match), ("F1", verdict.f1)):
        if pair is not None:
            rows.append((name, f"{pair[0]:.2f}", f"{pair[1]:.2f}"))
    return rows
