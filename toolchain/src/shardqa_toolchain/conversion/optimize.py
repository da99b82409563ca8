"""Fusions of onnxruntime's for transformers, on a user's own ONNX file such as one that torch or optimum exported.

The readers that `graph.py` writes hold the fused operators already.
"""

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import AttentionMaskFormat, FusionOptions

from shardqa.errors import BadModel
from shardqa.models.scoring import SCORING_FILE
from shardqa.models.session import MODEL_FILE
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain.cards import CardStep, Json
from shardqa_toolchain.conversion.checked import Check, convert
from shardqa_toolchain.conversion.checkpoint import CONFIG_FILE
from shardqa_toolchain.conversion.export import AS_IT_COMES
from shardqa_toolchain.conversion.networks import OnnxNetwork, read_onnx
from shardqa_toolchain.conversion.verify import Verdict, thresholds_for

COMPANIONS = (TOKENIZER_FILE, CONFIG_FILE, SCORING_FILE)  # copied where they lie beside the network


def optimize(source: Path, out: Path, check: Check = AS_IT_COMES) -> Verdict:
    """Fuse what can be fused in an ONNX file or folder, write it to the new folder ``out`` and compare it.

    Raises BadModel for a file that is not ONNX, for one that asks for an opset or operator that onnxruntime does not
    have here, and for a result that does not pass; SetupError when ``out`` can't be written.
    """
    source = Path(source)
    file = source / MODEL_FILE if source.is_dir() else source
    check_target(file)
    model, fused = _fused(file)
    step = CardStep("optimize", {"fused": fused})

    def write(folder: Path) -> None:
        (folder / MODEL_FILE).write_bytes(model.SerializeToString())
        for name in COMPANIONS:
            if (file.parent / name).is_file():
                shutil.copyfile(file.parent / name, folder / name)

    return convert(file.parent if file.name == MODEL_FILE else file, out, step, write, thresholds_for(file), check)


def check_target(file: Path) -> None:
    """Raise BadModel unless this machine's onnxruntime has the opset and operators that the file asks for."""
    model = read_onnx(file)
    known = onnx.defs.onnx_opset_version()
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > known:
            raise BadModel(
                f"{file} is of opset {opset.version}, at most {known} can be run; export it with an older one"
            )
    OnnxNetwork(file)


def _fused(file: Path) -> tuple[onnx.ModelProto, Json]:
    """The model with fused operators, and how many of each kind there are."""
    # Its warnings tell of patterns that were looked for in vain; the counts say what was found.
    logging.getLogger("onnxruntime.transformers").setLevel(logging.ERROR)
    options = FusionOptions("bert")
    # The default turns masks into lengths, which is wrong for rows padded on the left.
    options.attention_mask_format = AttentionMaskFormat.AttentionMask
    options.enable_embed_layer_norm = False
    # Slower on CPUs than what it replaces: see the Sum in graph.py.
    options.enable_skip_layer_norm = options.enable_bias_skip_layer_norm = False
    heads, hidden = _attention_sizes(file.parent / CONFIG_FILE)
    fused: Any = optimizer.optimize_model(str(file), "bert", heads, hidden, options, opt_level=1)
    counts = {name: count for name, count in fused.get_fused_operator_statistics().items() if count}
    return fused.model, counts


def _attention_sizes(config: Path) -> tuple[int, int]:
    """Heads and hidden size as the settings beside the file tell them; 0 leaves it to what the graph shows."""
    if not config.is_file():
        return 0, 0
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
        return int(found.get("num_attention_heads", 0)), int(found.get("hidden_size", 0))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BadModel(f"{config} can't be read: {error}; correct it or take it away") from None
