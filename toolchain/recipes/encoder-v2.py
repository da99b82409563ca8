"""Makes build/encoder-v2: all-MiniLM-L6-v2 trained on over (question, passage), so that a question finds its passage in
other words; then `shardqa-models encoder build/encoder-v2 --out build/encoder-v2-int8`.

    OMP_NUM_THREADS=1 .venv/bin/python toolchain/recipes/encoder-v2.py --minutes 70

An encoder of twelve layers is made so of e5-small-v2 (reader-v5.py says where that comes from), twice as long:

    ... encoder-v2.py --start build/e5-small-v2 --out build/encoder-v3 --minutes 140

After 316 steps, 60 minutes of a core, it finds what encoder-v2 finds after 1,438, at twice the time a passage: recall
at 5 of the questions held out 94.0 / 34.8 / 61.5 / 81.9 (text, other words, aloud, keywords) against 91.9 / 35.6 /
61.8 / 85.1 (`encoder-figures.py`, vectors as stored). It is not shipped.

The first round's batches hold pairs of one source; each later round's hold passages that lie near to one another by the
network as it is then, so that the others of a batch are hard negatives. The rate falls to 0 at the end of the time; a
state is kept every ten minutes, and the same command goes on from it.
"""

import json
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import questions
import torch
import typer
from safetensors.torch import save_file
from torch.nn import functional

from shardqa.models import embedding
from shardqa.models.embedding import PassageRow
from shardqa.models.reader import Row
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.conversion.checkpoint import Checkpoint
from shardqa_toolchain.conversion.embedding import packaged
from shardqa_toolchain.training import loop
from shardqa_toolchain.training.network import Encoder, Sizes, load_encoder, tensors

REPEATS = {"text": 1, "other": 2, "aloud": 2, "keywords": 1}  # how often a kind of question is learnt from in a pass
SQUAD, DOMAINS = 1_800, 500  # pairs of SQuAD, and of each other set: so that nothing is forgotten
PAIRS = 64  # of a batch
TOKENS = 128  # of a passage with its title
SCALE = 20.0  # of cosines, as in sentence-transformers' MultipleNegativesRankingLoss
TWINS = 0.93  # cosine from which two passages do not share a batch: one may answer the other's question
RATE, WARM_UP = 3e-5, 15  # steps
FIRST, ROUND = 250, 250  # batches of the first round and of each other
SAVE_SECONDS = 600

Pair = tuple[str, str, str, str]  # question, title, passage, and what tells the passage


def pairs(passages: int | None = None) -> dict[str, list[Pair]]:
    """By source; batches are made within one. A part of the asked passages, drawn at random, counts as one source."""
    groups = defaultdict[str, list[Pair]](list)
    learnt = [one for one in questions.records() if not questions.is_held_out(one)]
    for record in random.Random(9).sample(learnt, passages or len(learnt)):
        source = record["source"] if record["id"].startswith("b") and passages is None else "more"
        for one in record["questions"]:
            pair = one["question"], record["title"], record["text"], record["id"]
            groups[source] += [pair] * REPEATS.get(one["kind"], 0)
    dice = random.Random(3)
    for name, limit in (("squad/train-v1.1", SQUAD), *((f"domains/{one}", DOMAINS) for one in
                        ("qed-nq", "policyqa-dev", "tatqa-text", "hotpotqa-sub"))):  # fmt: skip
        content = squad.read_squad(f"../shared/data/{name}.json.gz")
        texts = {one.id: one for one in content.paragraphs}
        answerable = [one for one in content.questions if one.answers]
        dice.shuffle(answerable)
        first = {one.document: one for one in answerable}  # a passage once
        for one in list(first.values())[:limit]:
            passage = texts[one.document or ""]
            groups[name].append((one.text, passage.title if "squad" in name else "", passage.text, passage.id))
    return groups


class Training:
    def __init__(self, folder: Path, work: Path, minutes: float, steps: int | None = None) -> None:
        self.tokenizer, self.work = Tokenizer.load(folder), work
        start = Checkpoint.load(folder)
        self.network = Encoder(Sizes.of(start.config, start.weights))
        load_encoder(self.network, start.weights)
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self.step, self.spent, self.began, self.seconds, self.steps = 0, 0.0, time.monotonic(), minutes * 60, steps
        if (work / "state.pt").exists():
            state = torch.load(work / "state.pt", weights_only=True)
            self.network.load_state_dict(state["network"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.spent = state["step"], state["spent"]

    @property
    def left(self) -> float:
        """Share of the time, or of the steps."""
        if self.steps is not None:
            return 1 - self.step / self.steps
        return 1 - (self.spent + time.monotonic() - self.began) / self.seconds

    def passage(self, title: str, text: str) -> Row:
        return PassageRow.of(self.tokenizer, title, text).row

    def vectors(self, rows: Sequence[Row]) -> torch.Tensor:
        """Returns vectors of length 1, [rows, WIDTH]."""
        ids = [torch.from_numpy(row.input_ids[:TOKENS]) for row in rows]
        batch = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in ids], batch_first=True)
        with loop.precision(batch.device):
            hidden = self.network(batch, mask, torch.zeros_like(batch))[-1].float()
        return functional.normalize((hidden * mask[..., None]).sum(1), dim=-1)

    def learn(self, batch: Sequence[Pair]) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (self.step + 1) / WARM_UP) * max(0.0, self.left)
        questions = self.vectors([embedding.row(self.tokenizer.passage(one[0]).ids) for one in batch])
        likeness = SCALE * questions @ self.vectors([self.passage(one[1], one[2]) for one in batch]).T
        own = torch.arange(len(batch))
        loss = (functional.cross_entropy(likeness, own) + functional.cross_entropy(likeness.T, own)) / 2
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.item()

    def near(self, group: Sequence[Pair], dice: random.Random) -> Iterator[list[Pair]]:
        """Batches of passages that lie near to one another."""
        of = defaultdict[str, list[Pair]](list)
        for pair in dice.sample(group, len(group)):
            of[pair[3]].append(pair)
        names = list(of)
        with torch.no_grad():
            rows = [self.passage(of[name][0][1], of[name][0][2]) for name in names]
            vectors = torch.cat([self.vectors(rows[n : n + 64]) for n in range(0, len(rows), 64)])
        likeness = (vectors @ vectors.T).numpy()
        while len(rest := [n for n, name in enumerate(names) if of[name]]) >= PAIRS // 2:
            numbers: list[int] = []
            first = likeness[dice.choice(rest)]
            for n in sorted(rest, key=lambda n, first=first: -first[n]):  # type: ignore[misc]
                if len(numbers) < PAIRS and all(likeness[n, other] < TWINS for other in numbers):
                    numbers.append(n)
            yield [of[names[n]].pop() for n in numbers]

    def save(self) -> None:
        spent = self.spent + time.monotonic() - self.began
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**state, "step": self.step, "spent": spent}, self.work / "state.new")
        (self.work / "state.new").replace(self.work / "state.pt")


def mixed(group: Sequence[Pair], dice: random.Random) -> Iterator[list[Pair]]:
    """Batches of one source, a passage once in each."""
    rest = dice.sample(group, len(group))
    while len(batch := list({pair[3]: pair for pair in rest}.values())[:PAIRS]) >= PAIRS // 2:
        yield batch
        for pair in batch:
            rest.remove(pair)


def main(
    minutes: float = typer.Option(70.0, help="Time of the whole run, over all commands."),
    steps: int | None = typer.Option(None, help="End after so many steps instead: for a learning curve."),
    passages: int | None = typer.Option(None, help="Learn from so many of the asked passages: the same."),
    start: Annotated[Path | None, typer.Option(help="The checkpoint to begin at, all-MiniLM-L6-v2 if none.")] = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("build/encoder-v2"),
) -> None:
    """Train, and write the checkpoint."""
    start, work = start or packaged(), out.with_name(f"{out.name}.work")
    work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    train(Training(start, work, minutes, steps), pairs(passages), start, out)


def train(run: Training, groups: Mapping[str, Sequence[Pair]], start: Path, out: Path) -> None:
    last_save = time.monotonic()
    while run.left > 0:
        turn = max(0, 1 + (run.step - FIRST) // ROUND)
        dice = random.Random(turn)
        make = run.near if turn else mixed
        batches = [batch for name in sorted(groups) for batch in make(groups[name], dice)]
        losses = []
        for batch in dice.sample(batches, len(batches))[: ROUND if turn else FIRST]:
            if run.left <= 0:
                break
            losses.append(run.learn(batch))
            if time.monotonic() - last_save > SAVE_SECONDS:
                run.save()
                last_save = time.monotonic()
        print(json.dumps({"round": turn, "step": run.step, "loss": round(float(np.mean(losses)), 4)}), flush=True)
    run.save()
    out.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(start / name, out / name)
    save_file(tensors(run.network), out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    typer.run(main)
