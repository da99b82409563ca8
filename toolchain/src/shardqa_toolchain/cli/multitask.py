"""`shardqa-models train multitask`: one encoder for several tasks, and what each of them scores."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa_toolchain.cli.needs import need
from shardqa_toolchain.cli.training import SkipOption, WorkOption, progress_bar, say_faults, work_beside

if TYPE_CHECKING:
    from shardqa_toolchain.training.multitask import MultitaskReport


def train_multitask(
    recipe: Annotated[
        Path, typer.Option("--recipe", help="TOML: a start, a table `task` for each task, a table `schedule`.")
    ],
    out: Annotated[Path, typer.Option("--out", help="New folder for the checkpoint and the ONNX folders.")],
    work: WorkOption = None,
    skip_faulty: SkipOption = False,
    threads: Annotated[int, typer.Option("--threads", help="Threads of the measurement.", min=1)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune one BERT for several tasks: spans, answerability, sequence and token classification.

    Writes OUT/checkpoint, OUT/float32 and OUT/int8 (ONNX, an output for each task) and prints each task's scores on its
    dev files. The same command resumes an interrupted run. toolchain/multitask.md has the format
    of recipe and data.

    Example: shardqa-models train multitask --recipe tasks.toml --out build/tasks
    """
    need("torch", "safetensors", "matplotlib", "onnx")
    from shardqa_toolchain.training import multitask
    from shardqa_toolchain.training.multitask_recipe import MultitaskRecipe

    settings = MultitaskRecipe.read(recipe)
    settings = replace(settings, skip_faulty=skip_faulty or settings.skip_faulty)
    with progress_bar() as report:
        result = multitask.train(settings, out, work or work_beside(out), report, threads=threads)
    _tell(result, out, as_json)


def _tell(report: MultitaskReport, out: Path, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(report), "out": str(out)})
        return
    say_faults(report.faults)
    learnt = ", ".join(f"{name} {count}" for name, count in report.examples.items())
    say(f"{report.rows} rows ({learnt}), {report.steps} steps, loss {report.loss:.3f}")
    print_table(
        ["network", "task", "examples", "metric", "percent"],
        [
            [precision, task, result.examples, metric, f"{value:.2f}"]
            for precision, tasks in report.scores.items()
            for task, result in tasks.items()
            for metric, value in result.scores.items()
        ],
    )
    say(f"wrote {out}: checkpoint, {', '.join(report.scores)}")
