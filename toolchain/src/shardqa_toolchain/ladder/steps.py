"""The steps, from the naive way of serving to the shipped one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from shardqa.models.session import MODEL_FILE
from shardqa_toolchain.conversion.checkpoint import WEIGHTS_FILE
from shardqa_toolchain.ladder.job import CACHE, ONNX, TRANSFORMERS, Job

RANDOM_WEIGHTS = "not measured: random weights"
SAME_ANSWERS = "not measured: the answers are those of int8"

# Of processors that multiply bfloat16; on others autocast costs more than it saves.
BF16_FLAGS = {"amx_bf16", "avx512_bf16"}


@dataclass(frozen=True, slots=True)
class LadderStep:
    name: str
    what: str  # in a few more words
    jobs: tuple[Job, ...]  # a process each, side by side
    file: Path  # the network's
    counted: bool = True  # whether it is a step of the ladder; the others are shown beside it
    unscored: str = ""  # why its answers are not scored


@dataclass(frozen=True, slots=True)
class LadderModels:
    base: Path
    checkpoint: Path
    exact: Path  # the checkpoint in ONNX, float32
    reader: Path  # the checkpoint in ONNX, int8
    base_is_random: bool
    checkpoint_is_random: bool
    base_size: str  # such as "12 x 768, 109.5 million parameters"
    checkpoint_size: str
    checkpoint_backend: str = TRANSFORMERS


def steps(models: LadderModels, inputs: Path, longest: int, seconds: float, cores: list[int]) -> list[LadderStep]:
    """The counted steps, bottom first; raises nothing."""
    unscored = RANDOM_WEIGHTS if models.checkpoint_is_random else ""

    def job(backend: str, folder: Path) -> Job:
        return Job(backend, (str(folder),), str(inputs), len(cores), longest, seconds)

    base = replace(job(TRANSFORMERS, models.base), padded=True)
    small = job(models.checkpoint_backend, models.checkpoint)
    exact, int8 = job(ONNX, models.exact), job(ONNX, models.reader)
    pinned = tuple(replace(int8, threads=1, core=core) for core in cores)
    weights = models.checkpoint / WEIGHTS_FILE
    return [
        LadderStep(
            "naive",
            f"{models.base_size}, in torch, float32, padded to {longest}, all threads in one process",
            (base,),
            models.base / WEIGHTS_FILE,
            unscored=RANDOM_WEIGHTS if models.base_is_random else "",
        ),
        LadderStep(
            "smaller model",
            f"{models.checkpoint_size}, in torch, float32, padded",
            (replace(small, padded=True),),
            weights,
            unscored=unscored,
        ),
        LadderStep("no padding", "rows of their own length", (small,), weights, unscored=unscored),
        LadderStep("ONNX", "float32 in onnxruntime", (exact,), models.exact / MODEL_FILE, unscored=unscored),
        LadderStep("int8", "int8 in onnxruntime", (int8,), models.reader / MODEL_FILE, unscored=unscored),
        LadderStep(
            "one thread each",
            f"{len(cores)} processes of one thread, each on its core",
            pinned,
            models.reader / MODEL_FILE,
            unscored=unscored,
        ),
    ]


def sides(models: LadderModels, counted: list[LadderStep], flags: set[str]) -> Iterator[LadderStep]:
    """Yields what is shown beside the ladder; ``flags`` are the processor's."""
    plain, int8 = counted[2], counted[4]
    job = plain.jobs[0]
    yield replace(
        plain,
        name="batches",
        what="as 'no padding', all questions at once in batches of like length",
        jobs=(replace(job, batched=True),),
        counted=False,
    )
    if flags & BF16_FLAGS:
        what = "as 'no padding', torch's autocast to bfloat16"
        yield replace(plain, name="bfloat16", what=what, jobs=(replace(job, bf16=True),), counted=False)
    yield replace(
        int8,
        name="cache",
        what="answers that Redis remembers, one client",
        jobs=(replace(int8.jobs[0], backend=CACHE),),
        counted=False,
        unscored=SAME_ANSWERS,
    )
