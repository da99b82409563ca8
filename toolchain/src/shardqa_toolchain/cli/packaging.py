"""`shardqa-models package`: a reader as a bundle for serverless platforms, what it weighs and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardqa.cli.options import JsonOption
from shardqa.cli.output import print_json, print_table, say
from shardqa.errors import BadData, BadModel, SetupError
from shardqa_toolchain.cli.needs import need

if TYPE_CHECKING:
    from shardqa_toolchain.packaging.bundles import Bundle
    from shardqa_toolchain.packaging.runtime_api import FunctionReply
    from shardqa_toolchain.packaging.trial import RamPoint, Trial

KINDS = ("lambda", "functions")

Row = tuple[str, str, str]  # what, measured, wanted


def package(
    out: Annotated[Path, typer.Option("--out", help="The zip to write; with --kind functions, the folder.")],
    reader: Annotated[Path | None, typer.Argument(help="A reader's folder; the shipped one unless given.")] = None,
    kind: Annotated[str, typer.Option("--kind", help="lambda (a zip) or functions (a folder).")] = "lambda",
    python: Annotated[str, typer.Option("--python", help="Python of the runtime.")] = "3.12",
    machine: Annotated[str, typer.Option("--machine", help="x86_64, or aarch64 for Lambda's arm64.")] = "x86_64",
    glibc: Annotated[
        str | None, typer.Option("--glibc", help="C library there, when it is not Lambda's own, such as 2.36.")
    ] = None,
    lock: Annotated[
        Path | None,
        typer.Option("--lock", help="File of name==version lines; the versions installed here unless given."),
    ] = None,
    wheels: Annotated[
        Path | None, typer.Option("--wheels", help="Folder of wheels to use instead of a package index.")
    ] = None,
    interpreter: Annotated[
        str | None, typer.Option("--interpreter", help="A Python of that version, to compile and measure with.")
    ] = None,
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Start the bundle and time it.")] = True,
    ram_curve: Annotated[
        bool, typer.Option("--ram-curve", help="Compare it with the reader, and time it by share of a processor.")
    ] = False,
    try_: Annotated[
        bool, typer.Option("--try", help="Answer through AWS' runtime interface client (awslambdaric).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Pack a reader, its libraries and a handler: a zip for AWS Lambda, or a folder for Cloud Functions and Cloud Run.

    Example: shardqa-models package --out reader.zip --try --ram-curve
    """
    from shardqa.models import shipped
    from shardqa_toolchain.packaging import bundles, target
    from shardqa_toolchain.packaging import wheels as libraries

    if kind not in KINDS:
        raise BadData(f"--kind is {kind!r}; choose one of {', '.join(KINDS)}")
    runtime = target.Target.of(python, machine, glibc)
    folder, versions = reader or shipped.checked_folder(), libraries.pins(lock)
    if kind == "functions":
        _tell_folder(bundles.functions_folder(folder, out, runtime, versions), as_json)
        return
    interpreter = target.interpreter(runtime, interpreter)
    if interpreter is None and (try_ or ram_curve):
        raise SetupError(f"there is no {runtime.python} here to run the bundle with; name one with --interpreter")
    bundle = bundles.lambda_zip(folder, out, runtime, versions, wheels, interpreter)
    trial, replies = _tried(bundle, interpreter, measure, try_)
    points = _curve(bundle, folder, interpreter) if ram_curve and interpreter else []
    if as_json:
        print_json({**_record(bundle, trial, replies), "ram_curve": [asdict(point) for point in points]})
        return
    print_table(("what", "measured", "wanted"), [*_sizes(bundle), *_costs(trial), *_client(replies)])
    _tell_curve(points, bundle)
    _tell(bundle, trial)


def _curve(bundle: Bundle, reader: Path, interpreter: str) -> list[RamPoint]:
    """Compares the bundle with its reader, times it by share of a processor, and draws that beside the zip."""
    need("onnx", "safetensors")
    from shardqa_toolchain.conversion.verify import FLOAT, verify
    from shardqa_toolchain.packaging import trial

    with trial.unpacked(bundle.path) as root:
        verdict = verify(reader, root / "model", limit=trial.EQUAL_QUESTIONS, thresholds=FLOAT)
        if not verdict.passed:
            raise BadModel(f"the bundle's network is not the reader's: {'; '.join(verdict.failures)}; pack it anew")
        trial.check_equal(root, interpreter, reader)
        points = trial.ram_curve(root, interpreter)
    bundle.path.with_suffix(".svg").write_text(trial.drawn(points), encoding="utf-8")
    return points


def _tell_curve(points: Sequence[RamPoint], bundle: Bundle) -> None:
    if points:
        rows = [
            (f"{one.share:g}", f"{one.ram_mb:,}", f"{1e3 * one.p50:.1f}", f"{1e3 * one.p99:.1f}", one.ration)
            for one in points
        ]
        print_table(("vCPU", "Lambda's memory, MB", "p50, ms", "p99, ms", "rationed by"), rows)
        say(f"it answers as the reader does; drawn in {bundle.path.with_suffix('.svg')}")


def _tried(
    bundle: Bundle, interpreter: str | None, measure: bool, try_: bool
) -> tuple[Trial | None, list[FunctionReply]]:
    """Runs the trials that the options ask for; none where no interpreter runs the bundle."""
    from shardqa_toolchain.packaging import runtime_api, trial

    if interpreter is None or not (measure or try_):
        return None, []
    with trial.unpacked(bundle.path) as root:
        times = trial.measure(root, interpreter) if measure else None
        replies = []
        if try_:
            event = {"question": trial.QUESTION, "passage": trial.PASSAGE}
            with runtime_api.function(root, interpreter) as api:
                replies = [api.invoke(event) for _ in range(2)]
        if any(reply.failed for reply in replies):
            raise BadModel(f"the bundle failed in the runtime interface client: {replies[0].payload}")
    return times, replies


def _sizes(bundle: Bundle) -> list[Row]:
    return [
        ("zip", f"{bundle.zipped / 1e6:.1f} MB", "90 MB"),
        ("unzipped", f"{bundle.unzipped / 1e6:.1f} MB", "250 MB"),
        *((f"  {name}", f"{size / 1e6:.1f} MB", "") for name, size in bundle.parts.items() if size >= 50_000),
    ]


def _costs(trial: Trial | None) -> list[Row]:
    if trial is None:
        return []
    return [
        ("process start to first answer", f"{trial.first_answer:.2f} s", "1 s"),
        ("memory at most", f"{trial.peak_memory / 1e6:.0f} MB", "250 MB"),
        ("warm, 128 tokens, one processor, p50", f"{1e3 * trial.warm_p50:.1f} ms", "15 ms"),
        ("the same, p99", f"{1e3 * trial.warm_p99:.1f} ms", ""),
    ]


def _client(replies: Sequence[FunctionReply]) -> list[Row]:
    names = ("through the runtime interface client, first answer", "the same, second answer")
    return [(name, f"{reply.seconds:.3f} s", "") for name, reply in zip(names, replies, strict=False)]


def _tell(bundle: Bundle, trial: Trial | None) -> None:
    from shardqa_toolchain.packaging.bundles import MAX_UPLOAD_BYTES

    libraries = ", ".join(f"{name} {version}" for name, version in bundle.libraries.items())
    say(f"wrote {bundle.path} for {bundle.target}; {libraries}, from {bundle.source}")
    if bundle.zipped > MAX_UPLOAD_BYTES:
        say(f"it is over {MAX_UPLOAD_BYTES / 1e6:.0f} MB: upload it by way of S3")
    if not bundle.compiled:
        say(
            f"no Python {bundle.target.python} was found here, so nothing is compiled or timed "
            "and cold starts take longer; name one with --interpreter"
        )
    elif trial is None:
        say("nothing was timed")
    say(f"next: set the handler to lambda_function.handler, the runtime to python{bundle.target.python}")


def _tell_folder(bundle: Bundle, as_json: bool) -> None:
    if as_json:
        print_json(_record(bundle, None, []))
        return
    say(f"wrote {bundle.path} ({bundle.unzipped / 1e6:.1f} MB); next: gcloud run deploy --source {bundle.path}")


def _record(bundle: Bundle, trial: Trial | None, replies: Sequence[FunctionReply]) -> dict[str, Any]:
    return {
        **asdict(bundle),
        "path": str(bundle.path),
        "target": str(bundle.target),
        "trial": asdict(trial) if trial else None,
        "client": [asdict(reply) for reply in replies],
    }
