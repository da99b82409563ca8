"""Every conversion is written beside its place, compared with its source, then kept or thrown away."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from shardqa.errors import BadModel
from shardqa.models.shipped import write_checksums
from shardqa_toolchain.cards import NETWORK_FILES, CardStep, derive
from shardqa_toolchain.conversion.verify import Thresholds, Verdict, verify
from shardqa_toolchain.folders import written_atomically


@dataclass(frozen=True, slots=True)
class Check:
    """The settings of the comparison that follows a conversion."""

    questions: Path | None = None  # SQuAD file; see `verify.verify` for what is taken without one
    limit: int | None = None  # questions drawn from it; all unless given
    keep_failing: bool = False  # keep a result that fails, with the verdict in its card, rather than throw it away


def convert(
    source: Path, out: Path, step: CardStep, write: Callable[[Path], None], thresholds: Thresholds, check: Check
) -> Verdict:
    """Makes the folder ``out`` from the model in ``source``; ``write`` gets the folder to write all files to.

    The card of ``source`` is carried on with ``step`` and the verdict. Raises BadModel when the result does not pass
    and is not to be kept; nothing is left then. Raises BadData and SetupError as `folders.written_atomically` does.
    """
    with written_atomically(Path(out)) as folder:
        write(folder)
        verdict = verify(source, folder, check.questions, check.limit, thresholds)
        if not verdict.passed and not check.keep_failing:
            raise BadModel(
                f"what {step.name} made does not answer as {source} does: {'; '.join(verdict.failures)} "
                f"({verdict.inputs}); nothing was written; keep it with --keep-failing to look into it"
            )
        _describe(source, folder, Path(out).absolute().name, replace(step, verdict=verdict.as_json()))
    return verdict


def _describe(source: Path, folder: Path, name: str, step: CardStep) -> None:
    card = derive(source, folder, step, name)
    for file in (folder / name for name in NETWORK_FILES):
        if file.exists():
            card = card.with_size(file.name, file.stat().st_size / 1e6, "MB")
    card.save(folder)
    write_checksums(folder)
