"""The mean of checkpoints' weights: one network, as fast as each, that often reads better than each.

Fine-tuning one start further keeps it in the same valley of the loss; between the two ends the loss is lower than at
either (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"; "Model soups"). Networks that were not trained
from one another can't be averaged to any use: `verify` after it tells.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from shardqa.errors import BadData, BadModel
from shardqa.models.shipped import sha256
from shardqa.models.tokenizer import TOKENIZER_FILE
from shardqa_toolchain import cards
from shardqa_toolchain.folders import written_atomically
from shardqa_toolchain.training.saved import load_reader, write_checkpoint


def average(folders: Sequence[Path], out: Path, shares: Sequence[float] = ()) -> None:
    """Write the weighted mean of two checkpoints or more to ``out``; equal shares unless given.

    Outputs that only some of them have are the mean of those; the last must have them all, and the card is its card.
    Raises BadData for shares that don't fit, BadModel for networks of different shapes, outputs or tokenizers,
    SetupError for a full disk.
    """
    weights = _weights(folders, shares)
    for folder in folders[1:]:
        if sha256(folder / TOKENIZER_FILE) != sha256(folders[0] / TOKENIZER_FILE):
            raise BadModel(f"{folder} has another {TOKENIZER_FILE} than {folders[0]}; only one kind can be averaged")
    readers = [load_reader(folder) for folder in folders]
    for folder, reader in zip(folders, readers, strict=True):
        if reader.encoder.sizes != readers[0].encoder.sizes:
            raise BadModel(f"{folder} is of another shape than {folders[0]}; only one shape can be averaged")
        if missing := sorted(reader.heads().keys() - readers[-1].heads().keys()):
            raise BadModel(f"{folder} has {', '.join(missing)}, the last, {folders[-1]}, does not; name it last")
    parameters = [dict(reader.named_parameters()) for reader in readers]
    with torch.no_grad():
        for name, value in parameters[-1].items():
            parts = [(share, own[name]) for share, own in zip(weights, parameters, strict=True) if name in own]
            whole = sum(share for share, _ in parts)
            value.copy_(torch.stack([part * (share / whole) for share, part in parts]).sum(0))
    with written_atomically(out) as folder:
        write_checkpoint(readers[-1], folders[-1], folder)
        settings = {"of": [cards.address(one) for one in folders], "shares": weights}
        cards.derive(folders[-1], folder, cards.CardStep("average", settings), out.name)


def _weights(folders: Sequence[Path], shares: Sequence[float]) -> list[float]:
    if len(folders) < 2:
        raise BadData(f"{len(folders)} checkpoint is given, two or more are needed")
    weights = list(shares) or [1.0] * len(folders)
    if len(weights) != len(folders) or min(weights) <= 0:
        raise BadData(f"shares are {weights}, one above 0 for each of {len(folders)} checkpoints is needed")
    return [share / sum(weights) for share in weights]
