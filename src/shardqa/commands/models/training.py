"""`shardqa models train qa`: what a person gives, what is shown while it runs, what is said at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shardqa.commands.connection import JsonOption
from shardqa.commands.models.extra import need
from shardqa.commands.output import err, print_json, say
from shardqa.errors import BadData

if TYPE_CHECKING:
    from shardqa.models.training import loop
    from shardqa.models.training.qa import Report
    from shardqa.models.training.recipe import Recipe

train_app = typer.Typer(help="Fine-tune a checkpoint.", no_args_is_help=True)

RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", help="TOML with all settings; options given beside it win.")
]
StartOption = Annotated[str | None, typer.Option("--start", help="Folder of the checkpoint to start from.")]
DataOption = Annotated[list[str] | None, typer.Option("--data", help="SQuAD file; give it several times for several.")]
OutOption = Annotated[Path, typer.Option("--out", help="Folder to write the new checkpoint to.")]
WorkOption = Annotated[
    Path | None, typer.Option("--work", help="Folder for what resuming needs; beside --out unless given.")
]
PassesOption = Annotated[float | None, typer.Option("--passes", help="Times to go through the data.", min=0.001)]
RateOption = Annotated[float | None, typer.Option("--rate", help="Highest learning rate.", min=1e-9)]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Of everything drawn at random.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-faulty", help="Leave out questions whose answers do not stand where the file says.")
]


@train_app.command("qa")
def train_qa(
    out: OutOption,
    recipe: RecipeOption = None,
    start: StartOption = None,
    data: DataOption = None,
    passes: PassesOption = None,
    rate: RateOption = None,
    seed: SeedOption = None,
    skip_faulty: SkipOption = False,
    work: WorkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune a BERT into a reader, on SQuAD files, unanswerable questions included.

    Interrupted, it goes on where it was when started again in the same words. Preloading tcmalloc makes it faster.

    Example: shardqa models train qa --start my-bert --data train.json.gz --passes 2 --out my-reader
    """
    need("torch", "safetensors", "matplotlib")
    from shardqa.models.training import qa

    settings = recipe_of(recipe, start, data, passes, rate, seed, skip_faulty)
    with shown() as report:
        found = qa.train(settings, out, work or work_beside(out), report)
    tell(found, out, as_json)


def recipe_of(
    path: Path | None,
    start: str | None,
    data: list[str] | None,
    passes: float | None,
    rate: float | None,
    seed: int | None,
    skip_faulty: bool,
) -> Recipe:
    """The recipe's settings, those given as options in their place."""
    from shardqa.models.training.recipe import Recipe

    base = Recipe.read(path) if path else Recipe()
    schedule = base.schedule
    schedule = replace(
        schedule,
        passes=passes or schedule.passes,
        rate=rate or schedule.rate,
        seed=schedule.seed if seed is None else seed,
    )
    recipe = replace(
        base,
        start=start or base.start,
        data=replace(base.data, train=tuple(data or base.data.train), skip_faulty=skip_faulty or base.data.skip_faulty),
        schedule=schedule,
    )
    if not recipe.start:
        raise BadData("there is no checkpoint to start from; give --start, or a --recipe with `start`")
    return recipe


def work_beside(out: Path) -> Path:
    """Where a run keeps its state unless told: an interrupted command finds it again."""
    return out.with_name(f"{out.name}.work")


@contextmanager
def shown() -> Iterator[Callable[[loop.Progress], None]]:
    """A bar with loss, speed and time left; in a pipe a line now and then."""
    columns = (
        TextColumn("step {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  {task.fields[speed]:.0f} rows/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        line = bar.add_task("", total=None, loss=0.0, speed=0.0)

        def report(progress: loop.Progress) -> None:
            speed = progress.rows / max(progress.seconds, 1e-9)
            bar.update(line, total=progress.steps, completed=progress.step, loss=progress.loss, speed=speed)
            if not err.is_terminal:
                say(f"step {progress.step}/{progress.steps}  loss {progress.loss:.3f}  {speed:.0f} rows/s")

        yield report


def tell(report: Report, out: Path, as_json: bool) -> None:
    """Say what came of a run."""
    if as_json:
        print_json({**asdict(report), "out": str(out)})
        return
    for fault in report.faults[:10]:
        say(f"left out: {fault}")
    if len(report.faults) > 10:
        say(f"left out: {len(report.faults) - 10} more")
    held_out = "nothing held out" if report.held_out_loss is None else f"held out {report.held_out_loss:.3f}"
    say(f"{report.questions} questions, {report.steps} steps, loss {report.loss:.3f}, {held_out}")
    say(f"wrote {out}; next: shardqa models quantize {out} --out {out}-int8")
