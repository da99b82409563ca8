"""Networks with BERT's arithmetic under other names: their settings and tensors told in BERT's words.

The names are those of transformers' own files. DistilBERT (Sanh et al. 2019) is a BERT without token types; ELECTRA
(Clark et al. 2020) is one as long as its embeddings are as wide as its layers. MPNet (Song et al. 2020) also has places
told relative to one another, which only training can compute.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from shardqa.errors import BadModel

KNOWN = "BERT, DistilBERT and ELECTRA can be read"

MPNET = "mpnet"  # the family that numbers BERT's wordpieces in its own way and has RELATIVE places

# Our name for MPNet's places: besides BERT's, each attention logit is added a number for its tokens' distance.
RELATIVE = "absolute_and_relative"

# Those numbers, [buckets of distances, heads]; all layers share them.
RELATIVE_TABLE = "bert.encoder.relative_attention_bias.weight"

_DISTIL_SETTINGS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
}

_DISTIL_EPSILON = 1e-12  # not in its settings; written in transformers' code

_DISTIL_TENSORS = (
    (r"^distilbert\.", "bert."),
    (r"\btransformer\.layer\b", "encoder.layer"),
    (r"\battention\.q_lin\b", "attention.self.query"),
    (r"\battention\.k_lin\b", "attention.self.key"),
    (r"\battention\.v_lin\b", "attention.self.value"),
    (r"\battention\.out_lin\b", "attention.output.dense"),
    (r"\bsa_layer_norm\b", "attention.output.LayerNorm"),
    (r"\bffn\.lin1\b", "intermediate.dense"),
    (r"\bffn\.lin2\b", "output.dense"),
    (r"\boutput_layer_norm\b", "output.LayerNorm"),
)

_MPNET_TENSORS = (
    (r"^mpnet\.", "bert."),
    (r"\battention\.attn\.q\b", "attention.self.query"),
    (r"\battention\.attn\.k\b", "attention.self.key"),
    (r"\battention\.attn\.v\b", "attention.self.value"),
    (r"\battention\.attn\.o\b", "attention.output.dense"),
    (r"\battention\.LayerNorm\b", "attention.output.LayerNorm"),
)

_TENSORS = {
    "bert": (),
    "distilbert": _DISTIL_TENSORS,
    "electra": ((r"^electra\.", "bert."),),
    MPNET: _MPNET_TENSORS,
}

_EVERYWHERE = (
    (r"^(embeddings|encoder|pooler)\.", r"bert.\1."),  # an encoder saved alone, as BertModel saves it
    (r"\bLayerNorm\.gamma$", "LayerNorm.weight"),  # as files converted from TensorFlow spell it
    (r"\bLayerNorm\.beta$", "LayerNorm.bias"),
)


def bert_settings(config: Mapping[str, Any], also: Collection[str] = ()) -> dict[str, Any]:
    """A ``config.json`` in BERT's words; raises BadModel with the first setting that asks for other arithmetic.

    ``also`` is what the caller can do beyond BERT's: compute RELATIVE places, number wordpieces as MPNET does.
    """
    family = config.get("model_type", "bert")
    if family == MPNET and MPNET not in also:
        raise BadModel(
            "model_type is 'mpnet': `shardqa-models adopt` makes it a checkpoint that can be trained and can teach"
        )
    if family not in _TENSORS:
        raise BadModel(f"model_type is {family!r}: {KNOWN}")
    if family == "distilbert":
        distil = {_DISTIL_SETTINGS.get(name, name): value for name, value in config.items()}
        config = {**distil, "type_vocab_size": 2, "layer_norm_eps": _DISTIL_EPSILON}
    if family == "electra" and config.get("embedding_size") != config.get("hidden_size"):
        raise BadModel(
            f"embedding_size is {config.get('embedding_size')!r} and hidden_size {config.get('hidden_size')!r}: "
            "an ELECTRA is read when they are equal; start from one of another size, or from a BERT"
        )
    if family == MPNET:
        config = {**config, "position_embedding_type": RELATIVE, "type_vocab_size": 2}
    settings = {**config, "model_type": "bert"}
    if family != "bert":
        architectures = config.get("architectures") or []
        settings["architectures"] = [re.sub("^[A-Za-z]*?(For|Model$)", r"Bert\1", name) for name in architectures]
    _check_arithmetic(settings, RELATIVE in also)
    return settings


def bert_name(name: str, family: str) -> str:
    """A tensor's name in BERT's words."""
    for pattern, replacement in (*_TENSORS[family], *_EVERYWHERE):
        name = re.sub(pattern, replacement, name)
    return name


def _check_arithmetic(config: Mapping[str, Any], relative_too: bool) -> None:
    """Raise BadModel with the first setting under which the graph would compute something else than transformers."""
    relative = config.get("position_embedding_type") == RELATIVE
    if relative and not relative_too:
        raise BadModel(
            "it has MPNet's relative places: such a network can be trained and can teach (`shardqa-models distil "
            "--teacher`), but not be served or converted; distil a BERT from it"
        )
    standard = {
        "hidden_act": "gelu",
        "position_embedding_type": RELATIVE if relative else "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
    }
    for name, value in standard.items():
        if config.get(name, value) != value:
            raise BadModel(f"{name} is {config[name]!r}, {value!r} is needed; only such checkpoints can be read")
    strange = [name for name in config.get("architectures") or [] if not re.fullmatch("Bert(Model|For[A-Za-z]+)", name)]
    if strange:
        raise BadModel(f"architectures is {config['architectures']!r}: {KNOWN}")
