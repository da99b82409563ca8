"""`shardqa-models …`: from a trained BERT to a small, fast, checked reader."""

import typer

from shardqa import cli
from shardqa.cli.verbs import HELP
from shardqa_toolchain.cli import (
    calibration,
    conversion,
    encoder,
    eval,
    evidence,
    ladder,
    multitask,
    packaging,
    prune,
    times,
    training,
)

app = typer.Typer(
    name="shardqa-models",
    help="Train, shrink, check, measure and package readers. 'shardqa models' stores them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},
)
app.add_typer(training.train_app, name="train")
training.train_app.command("multitask")(multitask.multitask)
app.command("distil")(training.distil)
app.command("prune")(prune.prune)
app.command("mix")(training.mix)
app.command("curve")(training.curve)
app.command("average")(training.average)
app.command("adopt")(training.adopt)
app.command("candidates")(calibration.candidates)
app.command("calibrate")(calibration.calibrate)
app.command("calibrate-evidence")(calibration.calibrate_evidence)
app.command("measure")(calibration.measure)
app.command("measure-evidence")(evidence.measure_evidence)
app.add_typer(eval.app, name="eval")
eval.app.command("times")(times.times)
app.command("export")(conversion.export)
app.command("quantize")(conversion.quantize)
app.command("dequantize")(conversion.dequantize)
app.command("encoder")(encoder.encoder)
app.command("verify")(conversion.verify)
app.command("ladder")(ladder.ladder)
app.command("package")(packaging.package)


def main() -> None:
    """Run the program `shardqa-models`; its faults end it as those of `shardqa` do."""
    cli.main(app)
