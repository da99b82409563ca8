"""`shardqa.pipeline` against the pipeline of transformers 4.57: speed, and how many spans are the same.

    python bench/pipeline.py [--squad FILE] [--limit 200] [--threads 2]

Both have the shipped reader's weights, the same inputs and as many threads: transformers runs them in float32 on torch,
shardqa as the shipped int8 reader and in float32 on onnxruntime. They take turns, block by block, in one run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

import shardqa
from shardqa.models import shipped, squad
from shardqa.models.toolchain.conversion.checked import Check
from shardqa.models.toolchain.conversion.dequantize import dequantize
from shardqa.models.toolchain.conversion.export import export

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("SHARDQA_SHARED", ROOT.parent / "shared"))
ORACLE = ROOT / "tests" / "clients" / "pipeline_oracle.py"
BLOCKS = 4


def calls_of(file: Path, limit: int) -> list[dict[str, Any]]:
    """Questions evenly spread over a SQuAD file, each with its paragraph."""
    found = squad.read(file)
    texts = {paragraph.id: paragraph.text for paragraph in found.paragraphs}
    every = [question for question in found.questions if question.document in texts]
    some = [every[n * len(every) // limit] for n in range(limit)]
    return [{"question": one.text, "context": texts[one.document or ""]} for one in some]


def theirs(python: Path, checkpoint: Path, calls: list[dict[str, Any]], threads: int) -> tuple[float, list[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "calls.json"), Path(folder, "out.json")
        given.write_text(json.dumps(calls))
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        words = [str(python), str(ORACLE), str(checkpoint), str(given), str(out)]
        subprocess.run(words, check=True, capture_output=True, env=environment)
        told = json.loads(out.read_text())
    return told["seconds"], told["results"]


def ours(answer: Any, calls: list[dict[str, Any]]) -> tuple[float, list[Any]]:
    answer(**calls[0])
    began = time.perf_counter()
    results = [answer(**call) for call in calls]
    return time.perf_counter() - began, results


def same(some: list[Any], others: list[Any]) -> float:
    """Percent of equal spans."""
    pairs = list(zip(some, others, strict=True))
    return 100 * sum((a["start"], a["end"]) == (b["start"], b["end"]) for a, b in pairs) / len(pairs)


def main(
    python: Annotated[
        Path, typer.Option(help="Interpreter that has transformers 4.57; tests/clients/test_pipeline.py makes it.")
    ] = Path(sys.prefix) / "transformers-4" / "bin" / "python",
    file: Annotated[Path, typer.Option("--squad", help="SQuAD file.")] = SHARED / "data" / "squad" / "dev-v1.1.json.gz",
    limit: Annotated[int, typer.Option(help="Questions.", min=BLOCKS)] = 200,
    threads: Annotated[int, typer.Option(help="Threads of each.", min=1)] = len(os.sched_getaffinity(0)),
) -> None:
    """Print seconds, ratios and agreement."""
    calls = calls_of(file, limit)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, float32 = Path(folder, "checkpoint"), Path(folder, "float32")
        dequantize(shipped.folder(), checkpoint, Check(limit=4))
        export(checkpoint, float32, check=Check(limit=4))
        pipelines = {
            "int8": shardqa.pipeline(threads=threads),
            "float32": shardqa.pipeline(model=float32, threads=threads),
        }
        seconds = dict.fromkeys(["transformers", *pipelines], 0.0)
        results: dict[str, list[Any]] = {name: [] for name in seconds}
        for block in range(BLOCKS):
            part = calls[block::BLOCKS]
            took = {"transformers": theirs(python, checkpoint, part, threads)}
            took |= {name: ours(answer, part) for name, answer in pipelines.items()}
            for name, (spent, found) in took.items():
                seconds[name] += spent
                results[name] += found
    typer.echo(f"{limit} questions of {file.name}, one a call, {threads} threads")
    typer.echo(f"{'':>14} {'ms each':>8} {'speed':>7} {'same spans, %':>14}")
    for name, spent in seconds.items():
        ratio, equal = seconds["transformers"] / spent, same(results[name], results["transformers"])
        typer.echo(f"{name:>14} {1000 * spent / limit:>8.1f} {ratio:>6.2f}x {equal:>14.2f}")


if __name__ == "__main__":
    typer.run(main)
