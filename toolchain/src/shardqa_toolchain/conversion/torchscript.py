"""A checkpoint's reader as TorchScript, which any torch loads without this package."""

import io
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from shardqa_toolchain.training.saved import load_reader


class TracedReader(nn.Module):
    """The span reader of a checkpoint's folder, for tracing."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.reader = load_reader(folder).eval().requires_grad_(False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Start and end logits, float32 [batch, tokens] each; inputs are int64 [batch, tokens]."""
        start, end = self.reader(input_ids, attention_mask, token_type_ids).float().unbind(-1)
        return start, end


def write(folder: Path, file: Path, halves: bool = False) -> None:
    """Trace the reader of a checkpoint's folder into a file, in bfloat16 if ``halves``; raises OSError."""
    reader = TracedReader(folder).to(torch.bfloat16 if halves else torch.float32)
    example = (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 5, dtype=torch.int64), torch.zeros(2, 5).long())
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(reader, example)  # type: ignore[no-untyped-call]
        content = io.BytesIO()
        torch.jit.save(traced, content)
    # By way of memory: torch's own writer reports a full disk as a RuntimeError without a cause.
    file.write_bytes(content.getvalue())
