"""`shardqa-models train multitask`: a recipe in, one network for all its tasks out, each task's score told."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa_toolchain.cli.needs import need
from shardqa_toolchain.cli.training import OutOption, WorkOption, progress_bar, work_beside


def multitask(
    recipe: Annotated[Path, typer.Option("--recipe", help="TOML with the start, the form and each task's files.")],
    out: OutOption,
    work: WorkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune one BERT for several tasks: spans, answerability, labels of texts and of tokens, all in one pass.

    Example: shardqa-models train multitask --recipe tasks.toml --out build/tasks
    """
    need("torch", "onnx", "safetensors")
    from shardqa_toolchain.training import multitask as several

    settings = several.MultitaskRecipe.read(recipe)
    with progress_bar() as report:
        result = several.train(settings, out, work or work_beside(out), report)
    if as_json:
        print_json({**asdict(result), "out": str(out)})
        return
    rows = [
        (name, str(count), f"{result.scores[name]:.2f}" if name in result.scores else None)
        for name, count in result.examples.items()
    ]
    print_table(("task", "examples", "score of the int8 network, %"), rows)
    say(f"{result.rows} rows, {result.steps} steps, loss {result.loss:.3f}")
    say(f"wrote {out}; next: shardqa models push tasks {out / several.INT8 / 'model.onnx'}")
