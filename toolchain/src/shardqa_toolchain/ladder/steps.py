"""The steps from the naive way of serving to the shipped one, and the networks that they run."""

import json
import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import save_file

from shardqa.models import shipped
from shardqa.models.scoring import SCORING_FILE, Scoring
from shardqa.models.session import MODEL_FILE
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import squad
from shardqa_toolchain.conversion.checked import Check
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, WEIGHTS_FILE, Checkpoint
from shardqa_toolchain.conversion.dequantize import dequantize
from shardqa_toolchain.conversion.export import export
from shardqa_toolchain.conversion.probes import seed_questions
from shardqa_toolchain.conversion.quantize import quantize
from shardqa_toolchain.ladder.worker import ONNX, TORCH, Job
from shardqa_toolchain.training import loop
from shardqa_toolchain.training.network import LayerSize, Sizes, SpanReader, tensors
from shardqa_toolchain.training.saved import config_of, head_tensors
from shardqa_toolchain.windows import WINDOW_TOKENS

# BERT-base (Devlin et al. 2019, section 3), and networks for a trial of seconds.
BASE = Sizes(30522, 512, 2, 768, 64, (LayerSize(12, 3072),) * 12)
TINY_BASE = Sizes(30522, 512, 2, 64, 16, (LayerSize(4, 128),) * 2)
TINY = Sizes(30522, 512, 2, 32, 8, (LayerSize(4, 48),))

SEED = 0  # of the questions drawn and of random weights


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    what: str
    jobs: tuple[Job, ...]  # a process each
    file: Path  # of the network
    trained: bool = True  # whether its answers mean something


@dataclass(frozen=True, slots=True)
class Networks:
    base: Path  # checkpoint of the naive step
    base_is_random: bool
    checkpoint: Path
    exact: Path  # in ONNX, float32
    reader: Path  # in int8
    trained: bool  # whether the checkpoint is


def networks(work: Path, checkpoint: Path | None, reader: Path | None, base: Path | None, quick: bool) -> Networks:
    """Makes the networks that are not given: a random base, the reader's checkpoint and its exact form.

    Raises BadModel for a folder that is no reader, SetupError for a full disk.
    """
    quickly = Check(limit=4, keep_failing=quick)  # a random network answers by a hair's breadth
    int8 = reader or (None if checkpoint else shipped.checked_folder())
    if quick:
        checkpoint, int8 = write_random(work / "tiny", TINY), None
    elif checkpoint is None:
        assert int8 is not None
        dequantize(int8, work / "checkpoint", quickly)
        checkpoint = work / "checkpoint"
    export(checkpoint, work / "exact", quickly)
    if int8 is None:
        quantize(checkpoint, work / "int8", quickly)
        int8 = work / "int8"
    Scoring.load(int8)  # what the server of the last table needs
    start = base or write_random(work / "base", TINY_BASE if quick else BASE)
    return Networks(start, base is None, checkpoint, work / "exact", int8, trained=not quick)


def write_random(folder: Path, sizes: Sizes) -> Path:
    """Writes a reader's checkpoint with fresh weights, else as the shipped reader's, and returns its folder."""
    loop.sow(SEED)
    network = SpanReader(sizes)
    folder.mkdir(parents=True)
    save_file({**tensors(network.encoder), **head_tensors(network)}, folder / WEIGHTS_FILE, {"format": "pt"})
    (folder / CONFIG_FILE).write_text(json.dumps({**config_of(sizes), "hidden_act": "gelu"}), encoding="utf-8")
    for name in (TOKENIZER_FILE, SCORING_FILE):
        shutil.copyfile(shipped.folder() / name, folder / name)
    return folder


def steps(made: Networks, questions: Path, cores: Sequence[int]) -> list[Step]:
    """The ladder: all threads in one process but for the last step, which has a process of one thread on each core."""
    threads = len(cores)
    base = Job(TORCH, str(made.base), threads, str(questions), WINDOW_TOKENS)
    smaller = Job(TORCH, str(made.checkpoint), threads, str(questions), WINDOW_TOKENS)
    plain = Job(TORCH, str(made.checkpoint), threads, str(questions))
    exact = Job(ONNX, str(made.exact), threads, str(questions))
    int8 = Job(ONNX, str(made.reader), threads, str(questions))
    alone = tuple(Job(ONNX, str(made.reader), 1, str(questions), core=core) for core in cores)
    weights, onnx = made.checkpoint / WEIGHTS_FILE, made.reader / MODEL_FILE
    kind = "random weights" if made.base_is_random else "trained"
    naive = f"{size_of(made.base)}, {kind}, torch, float32, padded to {WINDOW_TOKENS}, one process of {threads} threads"
    own = made.trained
    return [
        Step("naive", naive, (base,), made.base / WEIGHTS_FILE, trained=not made.base_is_random),
        Step("smaller network", f"{size_of(made.checkpoint)}, the rest alike", (smaller,), weights, own),
        Step("no padding", "rows of their own length", (plain,), weights, own),
        Step("ONNX", "float32 in onnxruntime", (exact,), made.exact / MODEL_FILE, own),
        Step("int8", "int8 in onnxruntime", (int8,), onnx, own),
        Step("one thread a process", f"{threads} processes, each on a core of its own", alone, onnx, own),
    ]


def size_of(folder: Path) -> str:
    """Describes a checkpoint's size, such as "6 x 384, 22.6 million parameters"."""
    checkpoint = Checkpoint.load(folder)
    parameters = sum(value.size for value in checkpoint.weights.values())
    hidden = checkpoint.weights["bert.embeddings.word_embeddings.weight"].shape[1]
    return f"{checkpoint.shape.layers} x {hidden}, {parameters / 1e6:.1f} million parameters"


def draw(questions: Path | None, count: int, out: Path) -> Path:
    """Writes ``count`` answerable questions with their paragraphs as a SQuAD file, always the same; returns it.

    They come from a SQuAD file, from ``seeds/`` where none is named. Raises BadData, OSError as `squad.read` does.
    """
    found = squad.read(questions) if questions else seed_questions()
    texts = {paragraph.id: paragraph.text for paragraph in found.paragraphs}
    able = [one for one in found.questions if one.answers and one.document in texts]
    drawn = random.Random(SEED).sample(able, min(count, len(able)))
    articles = [
        {"title": one.id, "paragraphs": [{"context": texts[one.document or ""], "qas": [_entry(one)]}]} for one in drawn
    ]
    out.write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return out


def _entry(question: squad.SquadQuestion) -> dict[str, object]:
    answers = [{"text": text, "answer_start": -1} for text in question.answers]
    return {"id": question.id, "question": question.text, "answers": answers}


def words_of(job: Job) -> list[str]:
    return ["shardqa_toolchain.ladder.worker", json.dumps(asdict(job))]


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0))
