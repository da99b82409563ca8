"""Makes build/reader-v4 of the reader before: all weights learn from questions as people ask them, beside what it knew.

    git archive fbea138f models/reader-v4-int8 | tar -x -C build --strip-components 1
    .venv/bin/shardqa-models dequantize build/reader-v4-int8 --out build/reader-v4-0
    git archive c7ee38d models/reader-v3-int8 | tar -x -C build --strip-components 1
    .venv/bin/shardqa-models dequantize build/reader-v3-int8 --out build/reader-v3-0
    .venv/bin/shardqa-models mix toolchain/recipes/mixtures/reader-v4.toml --out build/reader-v4-mixture
    .venv/bin/python toolchain/recipes/near-passages.py
    .venv/bin/python toolchain/recipes/reader-v4.py --minutes 100
    .venv/bin/shardqa-models average build/reader-v4 build/reader-v4-0 --share 0.7 --share 0.3 --out build/mean
    .venv/bin/shardqa-models quantize build/mean --out build/reader-v4-int8

A batch has groups: a question with its passage and with those that rank best for it and do not answer, among which its
own has to have the most relevance, and a question that the passage does not answer. Beside them are rows of the
mixture, whose spans keep to reader-v3's, and one of neighbours of one pattern ("The pilot is Ines Duarte."), made by
rule. The rate falls to 0 at the end of the time; the same command goes on from the state of ten minutes before.
"""

import gzip
import itertools
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import questions
import torch
import typer
from numpy.typing import NDArray
from torch.nn import functional

from shardqa.models import reader
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain.training import examples, loop, losses
from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningRow, collate
from shardqa_toolchain.training.network import SpanReader
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from shardqa_toolchain.training.spans import learning_rows

MIXTURE = Path("build/reader-v4-mixture")
WORK, OUT = Path("build/reader-v4.work"), Path("build/reader-v4")
NEAR = Path("build/near-passages.json.gz")
FORMER = Path("build/reader-v3-0")  # whose spans are kept to, on the mixture
ASKED, OTHERS, MIXED = 6, 5, 8  # of a batch: questions, passages that do not answer each, and rows of the mixture
REPEATS = {"text": 0.5, "other": 2, "aloud": 2, "keywords": 1}  # how often a kind of question is learnt from in a pass
MAX_ROW, HEADING = 208, 24  # tokens of a row, and of a heading before its passage
HEADED = 0.5  # share of the groups with headings, as shards read them
RATE, WARM_UP, SHOWN, SAVE_SECONDS = 5e-5, 30, 25, 600
CHOICE = 0.5  # weight of this loss, beside 1.5 for evidence and 1 for the others
OWN, OTHER, ABSENT, ELSE = 2.0, 0.5, 3.0, 1.0  # a row's weight in the loss of relevance
NO_SENTENCE = -1
CPU = torch.device("cpu")

ROLES = (
    "harbour master;pilot;kiln master;manager;treasurer;secretary;crane operator;head gardener;caretaker;archivist;"
    "curator;head nurse;warden;librarian;foreman;clerk;chair of the board;auditor;bookkeeper;ferryman;night porter"
).split(";")
FIRST = "Otto Ines Lena Omar Noor Greta Hugo Tor Bo Nora Jonas Ned Amara Kofi Mei Ravi Elif Dario Petra Yusuf".split()
LAST = "Rask Duarte Frey Diaz Patel Lund Stam Vik Lowe Fell Pike Coll Hale Moreau Tanaka Singh Kaya Rossi Novak".split()
SAID = ("The {0} is {1}.", "{1} is the {0}.", "{0}: {1}", "{1}, {0}.", "The post of {0} is held by {1}.")
WHO = ("Who is the {}?", "who's the {}", "{}", "What is the name of the {}?", "Which person is {}?")


@dataclass(frozen=True, slots=True)
class AskedRow(LearningRow):
    """A row whose passage's sentences are known."""

    sentences: NDArray[np.int64]  # of each token the number of its sentence, NO_SENTENCE outside them


class Rows:
    """Draws rows to learn from."""

    def __init__(self, start: Path) -> None:
        self.tokenizer, self.dice = Tokenizer.load(start), random.Random()
        with gzip.open(NEAR, "rt", encoding="utf-8") as file:
            mined = json.load(file)
        self.passages, self.near = mined["passages"], mined["near"]
        self.records = [one for one in questions.records() if not questions.is_held_out(one)]
        self.mixture, _ = examples.read([MIXTURE / "train.json.gz", MIXTURE / "train.jsonl.gz"], self.tokenizer, True)
        self._tokens: dict[str, PassageTokens] = {}

    def posed(self) -> Iterator[tuple[questions.Record, dict[str, Any]]]:
        """Questions with their passages, without end."""
        pairs = [(record, one) for record in self.records for one in record["questions"]
                 if one["kind"] in REPEATS and len(self.near.get(one["question"], ())) >= OTHERS]  # fmt: skip
        weights = [REPEATS[one["kind"]] for _, one in pairs]
        while True:
            yield from self.dice.choices(pairs, weights, k=len(pairs))

    def group(self, record: questions.Record, entry: dict[str, Any]) -> list[tuple[LearningRow, float]]:
        """Rows of a question, its own passage first, and their weights."""
        has_heading = self.dice.random() < HEADED
        others = (self.passages[n] for n in self.dice.sample(self.near[entry["question"]], OTHERS))
        absent = [one for one in record["questions"] if one["kind"] == "absent"][:1]
        return [
            (self.row(entry, record, has_heading), OWN),
            *((self.row({"question": entry["question"]}, other, has_heading), OTHER) for other in others),
            *((self.row(one, record, has_heading), ABSENT) for one in absent),
        ]

    def of_mixture(self) -> LearningRow:
        return next(iter(learning_rows(self.dice.choice(self.mixture).example, MAX_ROW)))

    def of_pattern(self) -> LearningRow:
        """One of several sentences that differ in a name alone, or none of them, answers."""
        dice = self.dice
        count = dice.randint(2, 7)
        roles, form = dice.sample(ROLES, count + 1), dice.choice(SAID)
        names = [" ".join(pair) for pair in zip(dice.sample(FIRST, count), dice.sample(LAST, count), strict=True)]
        lines = [form.format(*pair) for pair in zip(roles, names, strict=False)]
        ends = list(itertools.accumulate(len(line) + 1 for line in lines))
        places = [(end - 1 - len(line), end - 1) for line, end in zip(lines, ends, strict=True)]
        record = {"text": dice.choice(" \n").join(lines), "title": "", "path": "", "sentences": places}
        if dice.random() < 0.2:
            return self.row({"question": dice.choice(WHO).format(roles[count])}, record, False)
        n = dice.randrange(count)
        start = places[n][0] + lines[n].rfind(names[n])
        answer = {"sentences": [n], "span": (start, start + len(names[n]))}
        return self.row({"question": dice.choice(WHO).format(roles[n]), **answer}, record, False)

    def row(self, entry: dict[str, Any], record: questions.Record, headed: bool) -> LearningRow:
        """A question with a passage; without `sentences` the passage does not answer."""
        question = self.tokenizer.question(entry["question"])
        path = (record.get("path") or "").split(" > ")[-1] or record["title"]
        heading = self.tokens(f"{path}:").ids[: HEADING if headed and path else 0]
        passage = self.tokens(record["text"])
        offsets = passage.offsets[: MAX_ROW - len(question) - len(heading) - 3]
        row = reader.join(question, passage.ids[: len(offsets)], heading)
        evidence = np.full(len(row), UNSAID, np.int8)
        evidence[row.passage] = 0
        start = end = 0
        if "sentences" in entry:
            for n in entry["sentences"]:
                evidence[row.passage.start + touched(offsets, record["sentences"][n])] = 1
            inside = touched(offsets, entry["span"]) if entry.get("span") else []
            start, end = (row.passage.start + inside[n] for n in (0, -1)) if len(inside) else (UNKNOWN, UNKNOWN)
        sentences = np.full(len(row), NO_SENTENCE, np.int64)
        for n, place in enumerate(record.get("sentences", ())):
            sentences[row.passage.start + touched(offsets, place)] = n
        return AskedRow(row.input_ids, row.token_type_ids, int(start), int(end), evidence, sentences)

    def tokens(self, text: str) -> PassageTokens:
        return self._tokens.setdefault(text, self.tokenizer.passage(text))


def choice_loss(evidence: torch.Tensor, rows: Sequence[LearningRow]) -> torch.Tensor:
    """Cross entropy of the choice among a passage's sentences, by the mean evidence of each; a mean over the rows whose
    passage answers."""
    losses = [evidence.sum() * 0]
    for line, row in enumerate(rows):
        if isinstance(row, AskedRow) and row.answers:
            numbers = torch.from_numpy(row.sentences)
            own, numbers = evidence[line, : len(row)][numbers >= 0], numbers[numbers >= 0]
            sizes = numbers.bincount()
            means = torch.zeros(len(sizes)).index_add(0, numbers, own) / sizes.clamp(min=1)
            means = means.masked_fill(sizes == 0, -torch.inf)
            right = torch.from_numpy(np.unique(row.sentences[row.evidence == 1]))
            losses.append(means.logsumexp(0) - means[right[right >= 0]].logsumexp(0))
    return torch.stack(losses).sum() / max(1, len(losses) - 1)


def touched(offsets: Any, place: Any) -> Any:
    """Numbers of the wordpieces that share a character with a place."""
    return np.flatnonzero((offsets[:, 0] < place[1]) & (offsets[:, 1] > place[0]))


def choice_of_passage(relevance: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the choice of a question's own passage among its group's, by relevance; a mean over groups."""
    firsts = torch.nonzero(weights == OWN)[:, 0].tolist()
    lists = torch.stack([relevance[first : first + 1 + OTHERS] for first in firsts])
    return functional.cross_entropy(lists, torch.zeros(len(firsts), dtype=torch.long))


def loss_of(network: SpanReader, former: SpanReader, batch: Sequence[tuple[LearningRow, float]]) -> torch.Tensor:
    """The first MIXED rows are the mixture's."""
    rows, of_batch = [row for row, _ in batch], collate([row for row, _ in batch])
    weights = torch.tensor([weight for _, weight in batch])
    logits = losses.reader_logits(network, of_batch, CPU)
    assert logits.evidence is not None
    assert logits.relevance is not None
    with torch.no_grad():
        known = losses.reader_logits(former, collate(rows[:MIXED]), CPU).spans
    spans = logits.spans[:MIXED, : known.shape[1]]
    answers = torch.from_numpy(of_batch.answers).float()
    relevance = functional.binary_cross_entropy_with_logits(logits.relevance, answers, weights / weights.mean())
    return torch.stack([
        losses.span_loss(logits.spans, of_batch, CPU),
        losses.EVIDENCE_WEIGHT * losses.evidence_loss(logits.evidence, of_batch, CPU),
        CHOICE * choice_loss(logits.evidence, rows),
        choice_of_passage(logits.relevance, weights),
        relevance,
        MIXED / len(rows) * losses.distance(spans.transpose(1, 2), known.transpose(1, 2)),
    ]).sum()  # fmt: skip


def main(
    minutes: Annotated[float, typer.Option(help="Time of the whole run, over all commands.")] = 100.0,
    start: Annotated[Path, typer.Option(help="The checkpoint to begin at.")] = Path("build/reader-v4-0"),
) -> None:
    """Train, and write the checkpoint."""
    WORK.mkdir(parents=True, exist_ok=True)
    network, former = load_reader(start), load_reader(FORMER).eval()
    parts = ([one for one in network.parameters() if (one.dim() > 1) is matrix] for matrix in (True, False))
    groups = [{"params": part, "weight_decay": decay} for part, decay in zip(parts, (0.01, 0.0), strict=True)]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), fused=True)
    state = torch.load(WORK / "state.pt", weights_only=True) if (WORK / "state.pt").exists() else None
    step, spent = (state["step"], state["spent"]) if state else (0, 0.0)
    if state:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
    rows, began, last_save, values = Rows(start), time.monotonic(), time.monotonic(), list[float]()
    posed = rows.posed()
    while (left := 1 - (spent + time.monotonic() - began) / (60 * minutes)) > 0:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * min(1.0, 1.3 * left)
        mixed = [*(rows.of_mixture() for _ in range(MIXED)), rows.of_pattern()]
        batch = [(row, ELSE) for row in mixed]
        for _ in range(ASKED):
            batch += rows.group(*next(posed))
        with loop.precision(CPU):
            loss = loss_of(network, former, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        values.append(loss.item())
        if time.monotonic() - last_save > SAVE_SECONDS:
            both = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**both, "step": step, "spent": spent + time.monotonic() - began}, WORK / "state.new")
            (WORK / "state.new").replace(WORK / "state.pt")
            last_save = time.monotonic()
        if step % SHOWN == 0:
            print(json.dumps({"step": step, "loss": round(float(np.mean(values[-SHOWN:])), 4)}), flush=True)
    OUT.mkdir(exist_ok=True)
    write_checkpoint(network, start, OUT)


if __name__ == "__main__":
    typer.run(main)
