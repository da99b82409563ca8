"""The shipped reader as a bundle for AWS Lambda: sizes, cold start, memory, latency.

    python bench/package.py [READER]

Made for the Python that runs this and from the libraries installed here, so that nothing is fetched; `shardqa-models
package` makes the same for Lambda's own runtime.
"""

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from shardqa import machine
from shardqa.models import shipped
from shardqa_toolchain.packaging import bundles, runtime_api, trial, wheels
from shardqa_toolchain.packaging.target import Target

MARKS = "wanted: zip 90 MB, unzipped 250 MB, first answer 1 s, memory 250 MB, warm 15 ms"


def main(
    reader: Annotated[Path | None, typer.Argument(help="Folder; the shipped reader unless given.")] = None,
) -> None:
    """Print the figures of a bundle."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    target = Target.of(python, platform.machine(), platform.libc_ver()[1])
    typer.echo(f"{target}, one of {machine.label()}")
    typer.echo(MARKS)
    with tempfile.TemporaryDirectory(prefix="shardqa-bench-") as folder:
        out = Path(folder) / "reader.zip"
        bundle = bundles.lambda_zip(reader or shipped.folder(), out, target, wheels.pins(), python=sys.executable)
        typer.echo(f"zip {bundle.zipped / 1e6:.1f} MB, unzipped {bundle.unzipped / 1e6:.1f} MB")
        with trial.unpacked(out) as root:
            measure(root)


def measure(root: Path) -> None:
    """Time an unpacked bundle, print."""
    found = trial.measure(root, sys.executable)
    typer.echo(f"process start to first answer {found.first_answer:.2f} s, memory {found.peak_memory / 1e6:.0f} MB")
    typer.echo(
        f"warm, {trial.ROW_TOKENS} tokens, one processor: p50 {1e3 * found.warm_p50:.1f} ms, "
        f"p99 {1e3 * found.warm_p99:.1f} ms"
    )
    if subprocess.run([sys.executable, "-c", "import awslambdaric"], capture_output=True, check=False).returncode:
        typer.echo("runtime interface client: not installed (pip install awslambdaric)")
    else:
        with runtime_api.function(root) as api:
            reply = api.invoke({"question": trial.QUESTION, "passage": trial.PASSAGE})
            typer.echo(f"through the runtime interface client, first answer {reply.seconds:.2f} s: {reply.payload}")


if __name__ == "__main__":
    typer.run(main)
