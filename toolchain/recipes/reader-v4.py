"""Makes build/reader-v4 of reader-v3: all its weights learn from questions as people ask them, beside what it knew.

    git archive c7ee38d models/reader-v3-int8 | tar -x -C build --strip-components 1
    .venv/bin/shardqa-models dequantize build/reader-v3-int8 --out build/reader-v3-0
    .venv/bin/shardqa-models mix toolchain/recipes/mixtures/reader-v4.toml --out build/reader-v4-mixture
    OMP_NUM_THREADS=1 .venv/bin/python toolchain/recipes/reader-v4.py --minutes 100
    .venv/bin/shardqa-models quantize build/reader-v4 --out build/reader-v4-int8

What is shipped had a second run, from that int8 file dequantized (--start build/reader-v4-0, 85 minutes), and is the
mean of its end and its start: shardqa-models average build/reader-v4 build/reader-v4-0 --share 0.6 --share 0.4.

A chunk of rows is drawn anew each time: asked questions with their absent ones and with passages that share their words
and do not answer, a part of the mixture, and neighbours of one pattern ("The pilot is Ines Duarte."), which are made by
rule. The rate falls to 0 at the end of the time; the same command goes on from the state of ten minutes before.
"""

import itertools
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import questions
import torch
import typer
from numpy.typing import NDArray

from shardqa.models import reader
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain.training import examples, loop, losses
from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningRow, collate, plan
from shardqa_toolchain.training.retrieved import PassageRows
from shardqa_toolchain.training.saved import load_reader, write_checkpoint
from shardqa_toolchain.training.spans import crop, learning_rows

MIXTURE = Path("build/reader-v4-mixture")
WORK, OUT = Path("build/reader-v4.work"), Path("build/reader-v4")
ASKED, MIXED, PATTERNS = 3_200, 3_200, 300  # rows of a chunk
MAX_ROW, HEADING = 288, 24  # tokens of a row, and of a heading before its passage
HEADED = 0.7  # share of the asked rows with a heading, as shards read them
UNANSWERED = 0.4  # share of the questions asked also of a passage that does not answer
TOKENS, RATE, WARM_UP, SAVE_SECONDS = 4_096, 5e-5, 40, 600
RELEVANCE, CHOICE = 0.7, 0.5  # weights of these losses, beside 1.5 for evidence and 1 for spans
HELD = 1.0  # weight of the distance from the spans of a former reader, on the rows of the mixture
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
        self.tokenizer = Tokenizer.load(start)
        self.records = [one for one in questions.records() if not questions.is_held_out(one)]
        self.pool = defaultdict[str, list[questions.Record]](list)
        for one in [*questions.pool(), *self.records]:
            self.pool[one["source"]].append(one)
        self.mixture, _ = examples.read([MIXTURE / "train.json.gz", MIXTURE / "train.jsonl.gz"], self.tokenizer, True)
        random.Random(5).shuffle(self.mixture)
        self._tokens: dict[str, PassageTokens] = {}

    def chunk(self, number: int) -> list[LearningRow]:
        dice = random.Random(5_000 + number)
        of_asked = list(self.of_asked(dice))
        patterns = [self.of_pattern(dice) for _ in range(PATTERNS)]
        return [*dice.sample(of_asked, ASKED), *self.of_mixture(number, dice), *patterns]

    def of_mixture(self, number: int, dice: random.Random) -> Iterator[LearningRow]:
        places = np.random.default_rng((5, number))
        for n in range(number * MIXED, (number + 1) * MIXED):
            for row in learning_rows(self.mixture[n % len(self.mixture)].example, MAX_ROW):
                yield crop(row, places) if dice.random() < 0.5 else row

    def of_asked(self, dice: random.Random) -> Iterator[LearningRow]:
        for source, members in itertools.groupby(sorted(self.records, key=source_of), key=source_of):
            near = dice.sample(self.pool[source], min(3_000, len(self.pool[source])))
            search = PassageRows([self.tokens(one["text"]).ids for one in near])
            for record in members:
                for entry in record["questions"]:
                    has_heading = dice.random() < HEADED
                    yield self.row(entry, record, has_heading)
                    if entry["kind"] in ("other", "aloud"):
                        yield self.row(entry, record, not has_heading)
                    if entry["kind"] != "absent" and dice.random() < UNANSWERED:
                        numbers = search.likest(self.tokenizer.question(entry["question"]), 8)
                        others = (near[n] for n in numbers if not questions.are_twins(near[n]["text"], record["text"]))
                        for other in itertools.islice(others, 1):
                            yield self.row({"question": entry["question"]}, other, has_heading)

    def of_pattern(self, dice: random.Random) -> LearningRow:
        """One of several sentences that differ in a name alone, or none of them, answers."""
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


def source_of(record: questions.Record) -> str:
    return str(record["source"])


def touched(offsets: Any, place: Any) -> Any:
    """Numbers of the wordpieces that share a character with a place."""
    return np.flatnonzero((offsets[:, 0] < place[1]) & (offsets[:, 1] > place[0]))


def main(
    minutes: Annotated[float, typer.Option(help="Time of the whole run, over all commands.")] = 100.0,
    start: Annotated[Path, typer.Option(help="The checkpoint to begin at.")] = Path("build/reader-v3-0"),
    hold: Annotated[Path | None, typer.Option(help="The reader whose spans it keeps to, on the mixture.")] = None,
) -> None:
    """Train, and write the checkpoint."""
    WORK.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    network = load_reader(start)
    former = load_reader(hold).eval() if hold else None
    parts = ([one for one in network.parameters() if (one.dim() > 1) is matrix] for matrix in (True, False))
    groups = [{"params": part, "weight_decay": decay} for part, decay in zip(parts, (0.01, 0.0), strict=True)]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), fused=True)
    state = torch.load(WORK / "state.pt", weights_only=True) if (WORK / "state.pt").exists() else None
    step, chunk, spent = (state["step"], state["chunk"] + 1, state["spent"]) if state else (0, 0, 0.0)
    if state:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
    rows, began, last_save = Rows(start), time.monotonic(), time.monotonic()
    while (left := 1 - (spent + time.monotonic() - began) / (60 * minutes)) > 0:
        examples, loss_values = rows.chunk(chunk), []
        for batch in plan([len(row) for row in examples], TOKENS, 5, chunk):
            left = 1 - (spent + time.monotonic() - began) / (60 * minutes)
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * max(0.0, min(1.0, 1.1 * left))
            of_batch = collate([examples[n] for n in batch])
            is_known = torch.tensor([not isinstance(examples[n], AskedRow) for n in batch])
            with loop.precision(CPU):
                logits = losses.reader_logits(network, of_batch, CPU)
            assert logits.evidence is not None
            assert logits.relevance is not None
            loss = losses.span_loss(logits.spans, of_batch, CPU)
            loss = loss + losses.EVIDENCE_WEIGHT * losses.evidence_loss(logits.evidence, of_batch, CPU)
            loss = loss + CHOICE * choice_loss(logits.evidence, [examples[n] for n in batch])
            loss = loss + RELEVANCE * losses.relevance_loss(logits.relevance, of_batch, CPU)
            if former and is_known.any():
                with torch.no_grad(), loop.precision(CPU):
                    target = losses.reader_logits(former, of_batch, CPU).spans[is_known]
                share = is_known.float().mean()
                loss = loss + HELD * share * losses.distance(
                    logits.spans[is_known].transpose(1, 2), target.transpose(1, 2)
                )
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            loss_values.append(loss.item())
            if time.monotonic() - last_save > SAVE_SECONDS or left <= 0:
                both = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**both, "step": step, "chunk": chunk, "spent": spent + time.monotonic() - began},
                           WORK / "state.new")  # fmt: skip
                (WORK / "state.new").replace(WORK / "state.pt")
                last_save = time.monotonic()
            if left <= 0:
                break
        print(json.dumps({"chunk": chunk, "step": step, "loss": round(float(np.mean(loss_values)), 4)}), flush=True)
        chunk += 1
    OUT.mkdir(exist_ok=True)
    write_checkpoint(network, start, OUT)


if __name__ == "__main__":
    typer.run(main)
