"""A reader's outputs for a batch, and their losses: of spans, of evidence, of relevance."""

import torch
from torch import Tensor
from torch.nn import functional

from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningBatch
from shardqa_toolchain.training.network import MASKED, ReaderLogits, SpanReader

EVIDENCE_WEIGHT, RELEVANCE_WEIGHT = 1.5, 0.5  # of the losses of these outputs, beside 1 for the span's


def reader_logits(network: SpanReader, batch: LearningBatch, device: torch.device) -> ReaderLogits:
    """A reader's outputs in float32; of the spans those of question and padding are struck out."""
    ids, mask, types = (
        torch.from_numpy(value).to(device) for value in (batch.input_ids, batch.attention_mask, batch.token_type_ids)
    )
    return readable(network.logits(network.encoder(ids, mask, types)[-1]), types)


def readable(logits: ReaderLogits, types: Tensor) -> ReaderLogits:
    """Returns the outputs in float32; of the spans those of question and padding are struck out."""
    spans, evidence, relevance = logits
    return ReaderLogits(
        spans.float() + barred(types),
        None if evidence is None else evidence.float(),
        None if relevance is None else relevance.float(),
    )


def barred(types: Tensor) -> Tensor:
    """Returns what makes logits point at the passage and [CLS] alone when it is added, float32 [batch, tokens, 1]."""
    outside = types == 0
    outside[:, 0] = False
    return outside[..., None] * MASKED


def reader_loss(logits: ReaderLogits, batch: LearningBatch, device: torch.device) -> Tensor:
    """The weighted sum of the losses of the outputs that the reader has, a mean over rows."""
    return span_loss(logits.spans, batch, device) + sentence_loss(logits, batch, device)


def sentence_loss(logits: ReaderLogits, batch: LearningBatch, device: torch.device) -> Tensor:
    """The weighted losses of evidence and relevance; 0 for a reader without these outputs."""
    if logits.evidence is None or logits.relevance is None:
        return torch.zeros((), device=device)
    evidence = EVIDENCE_WEIGHT * evidence_loss(logits.evidence, batch, device)
    return evidence + RELEVANCE_WEIGHT * relevance_loss(logits.relevance, batch, device)


def span_loss(spans: Tensor, batch: LearningBatch, device: torch.device) -> Tensor:
    """Cross entropy of the right start and the right end (Devlin et al. 2019, section 4.2), a mean over all rows.

    ``spans`` is [batch, tokens, 2]; a row whose place is UNKNOWN adds nothing.
    """
    sides = zip(spans.unbind(-1), (batch.start, batch.end), strict=True)
    losses = [
        functional.cross_entropy(one, torch.from_numpy(place).to(device), ignore_index=UNKNOWN, reduction="sum")
        for one, place in sides
    ]
    return torch.stack(losses).sum() / (2 * len(batch.start))


def evidence_loss(evidence: Tensor, batch: LearningBatch, device: torch.device) -> Tensor:
    """Binary cross entropy of each token's evidence, a mean over a row's labelled tokens and then over rows."""
    labels = torch.from_numpy(batch.evidence).to(device)
    weights = (labels != UNSAID).float()
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1)
    losses = functional.binary_cross_entropy_with_logits(evidence, (labels == 1).float(), reduction="none")
    return (losses * weights).sum(1).mean()


def relevance_loss(relevance: Tensor, batch: LearningBatch, device: torch.device) -> Tensor:
    """Binary cross entropy of whether the row's passage answers, a mean over rows."""
    return functional.binary_cross_entropy_with_logits(relevance, torch.from_numpy(batch.answers).to(device).float())


def distance(logits: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean divergence of choices from their targets, KL(targets || logits), both [..., classes]."""
    own, target = functional.log_softmax(logits, dim=-1), functional.log_softmax(targets, dim=-1)
    return (target.exp() * (target - own)).sum(-1).mean()
