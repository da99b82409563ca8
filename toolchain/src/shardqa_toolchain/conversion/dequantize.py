"""From an int8 reader back to a checkpoint: the weights as its file holds them, float32, to train on or convert anew.

Reads what `quantize.py` writes in the form "dynamic", no other's. The rounding to int8 stays in the weights: this is
for readers whose float32 checkpoint is lost. What `int8.py` evened out is undone, so that a conversion starts afresh.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import save_file

from shardqa.errors import BadModel
from shardqa.models.session import MODEL_FILE
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.cards import CardStep
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE, EVIDENCE_HEADS, WEIGHTS_FILE
from shardqa_toolchain.conversion.export import AS_IT_COMES
from shardqa_toolchain.conversion.networks import read_onnx
from shardqa_toolchain.conversion.verify import QUANTIZED, Verdict

Constants = Mapping[str, NDArray[Any]]  # a network's constants by name


SELF = ("query", "key", "value")


def dequantize(source: Path, out: Path, check: Check = AS_IT_COMES) -> Verdict:
    """Write the checkpoint of the int8 reader in ``source`` to the new folder ``out``, and compare the two.

    Raises BadModel for a source that is no reader of the form "dynamic" and for a result that does not pass, BadData
    and SetupError as `folders.written_atomically` does.
    """
    constants = {one.name: numpy_helper.to_array(one) for one in read_onnx(source / MODEL_FILE).graph.initializer}
    config = json.loads((source / CONFIG_FILE).read_text(encoding="utf-8"))
    try:
        weights = _weights(constants, config["num_hidden_layers"])
    except KeyError as error:
        raise BadModel(
            f"{source / MODEL_FILE} has no {error}; only readers that `shardqa-models quantize` wrote can be taken back"
        ) from None

    def write(folder: Path) -> None:
        save_file({name: np.ascontiguousarray(one) for name, one in weights.items()}, folder / WEIGHTS_FILE)
        for name in (CONFIG_FILE, TOKENIZER_FILE):
            shutil.copyfile(source / name, folder / name)

    return convert(source, out, CardStep("dequantize"), write, QUANTIZED, check)


def _weights(constants: Constants, layers: int) -> dict[str, NDArray[np.float32]]:
    """A checkpoint's tensors by their names in transformers."""
    tables = "bert.embeddings."
    weights: dict[str, NDArray[np.float32]] = {
        f"{tables}word_embeddings.weight": constants["words.table"].astype(np.float32) * constants["words.scale"],
        f"{tables}position_embeddings.weight": constants["places.table"],
        f"{tables}token_type_embeddings.weight": constants["types.table"],
        "qa_outputs.weight": constants["span.weight"].T,
        "qa_outputs.bias": constants["span.bias"],
        **_norm(constants, f"{tables}LayerNorm"),
    }
    for name in EVIDENCE_HEADS:
        if f"{name}.weight" in constants:
            weights |= _dense(name, constants[f"{name}.weight"], constants[f"{name}.bias"])
    for number in range(layers):
        weights |= _layer(constants, number)
    return weights


def _layer(constants: Constants, number: int) -> dict[str, NDArray[np.float32]]:
    prefix, short = f"bert.encoder.layer.{number}.", f"layer.{number}"
    parts = {**_norm(constants, f"{prefix}attention.output.LayerNorm"), **_norm(constants, f"{prefix}output.LayerNorm")}
    product, biases = _product(constants, f"{short}.qkv"), constants[f"{short}.qkv.bias"]
    for part, weight, bias in zip(SELF, np.split(product, 3, axis=1), np.split(biases, 3), strict=True):
        parts |= _dense(f"{prefix}attention.self.{part}", weight, bias)
    mix, narrow = _product(constants, f"{short}.mix"), _product(constants, f"{short}.narrow")
    parts |= _dense(f"{prefix}attention.output.dense", mix, constants[f"{short}.attended.bias"])
    widen = _product(constants, f"{short}.widen")
    parts |= _dense(f"{prefix}intermediate.dense", widen, constants[f"{short}.widen.bias"])
    return parts | _dense(f"{prefix}output.dense", narrow, constants[f"hidden.{number + 1}.bias"])


def _product(constants: Constants, name: str) -> NDArray[np.float32]:
    """A product's weight, float32 [inputs, outputs], whole and not evened out."""
    count = sum(f"{name}.{group}.weight" in constants for group in range(len(constants)))
    groups = [f"{name}.{group}" for group in range(count)] or [name]
    parts = [constants[f"{one}.weight"].astype(np.float32) * constants[f"{one}.scale"] for one in groups]
    weight: NDArray[np.float32] = np.concatenate(parts)
    return weight * constants[f"{name}.even"][:, None] if f"{name}.even" in constants else weight


def _norm(constants: Constants, name: str) -> dict[str, NDArray[np.float32]]:
    return {f"{name}.weight": constants[f"{name}.gain"], f"{name}.bias": constants[f"{name}.shift"]}


def _dense(name: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
    return {f"{name}.weight": weight.T, f"{name}.bias": bias}
