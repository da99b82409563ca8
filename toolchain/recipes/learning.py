"""Rows that readers learn from, for the recipes: of questions as people ask them, of SQuAD, of a mixture, of patterns.

A group is a question with its passage, with those that rank best for it and do not answer, with a question on the
passage that it does not answer, and with a twin of the question, in which a name, code, number, date or place is
another. The names and roles of the patterns are rare ones: no test asks for them.
"""

import gzip
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import questions
import torch
from numpy.typing import NDArray

from shardqa.models import reader, sentences
from shardqa.models.tokenizer import PassageTokens, Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.training import examples
from shardqa_toolchain.training.batches import UNKNOWN, UNSAID, LearningRow
from shardqa_toolchain.training.spans import learning_rows
from shardqa_toolchain.twins import TwinMaker

SQUAD = Path("../shared/data/squad")
NEAR = Path("build/near-passages.json.gz")
REPEATS = {"text": 0.5, "other": 2, "aloud": 2, "keywords": 1}  # how often a kind of question is learnt from in a pass
OTHERS = 4  # passages of a group that do not answer
MAX_ROW, LONG_ROW, HEADING = 224, 320, 24  # tokens of a group's row, of another, and of a heading before its passage
HEADED = 0.5  # share of the rows with headings, as shards read them
MARGIN = 24  # pieces that stay before an answer where a passage is cut at its beginning
NO_SENTENCE = -1

ROLES = (
    "bursar;sexton;verger;almoner;provost;quartermaster;boatswain;cellarer;choirmaster;gamekeeper;falconer;glazier;"
    "farrier;organist;rector;chamberlain;usher;sommelier;luthier;lifeguard;paymaster;beekeeper;comptroller;lector"
).split(";")
FIRST = (
    "Nino Tamaz Lali Gela Irakli Maka Zurab Eteri Vakhtang Ketevan Davit Nana Levan Manana Otar Tinatin Beka".split()
)
LAST = (
    "Beridze Kapanadze Gelashvili Maisuradze Lomidze Tsiklauri Nozadze Abashidze Bolkvadze Shengelia Dolidze Svanidze "
    "Jincharadze Chikovani Tabidze Gabunia"
).split()
SAID = ("The {0} is {1}.", "{1} is the {0}.", "{0}: {1}", "{1}, {0}.", "The post of {0} is held by {1}.")
WHO = ("Who is the {}?", "who's the {}", "{}", "What is the name of the {}?", "Which person is {}?")


@dataclass(frozen=True, slots=True)
class AskedRow(LearningRow):
    """A row whose passage's sentences are known."""

    sentences: NDArray[np.int64]  # of each token the number of its sentence, NO_SENTENCE outside them


class Rows:
    """Draws rows to learn from."""

    def __init__(self, tokens_of: Path, mixture: Path, seed: int) -> None:
        self.tokenizer, self.dice = Tokenizer.load(tokens_of), random.Random(seed)
        self.passages, self.near = list[questions.Record](), dict[str, list[int]]()
        self.records = [one for one in questions.records() if not questions.is_held_out(one)]
        self.squad = squad_records(squad.read_squad(SQUAD / "train-v1.1.json.gz"), lambda one: bool(one.answers))
        unanswerable = squad.read_squad(SQUAD / "train-v2.0-unanswerable.json.gz")
        self.unanswered = squad_records(unanswerable, lambda one: not one.answers)
        mixed = squad_records(squad.read_squad(mixture / "train.json.gz"), lambda one: True)
        self.mixed = [(record, entry) for record in mixed for entry in record["questions"]]
        self.marked, _ = examples.read([mixture / "train.jsonl.gz"], self.tokenizer, True)
        sources = defaultdict[str, list[str]](list)
        for one in [*self.records, *self.squad]:
            sources[one["source"]].append(one["text"])
        self.twins = TwinMaker(sources)
        self._tokens: dict[str, PassageTokens] = {}

    @property
    def has_groups(self) -> bool:
        """Whether the file of near passages, which another recipe writes, is there."""
        if not self.near and NEAR.exists():
            with gzip.open(NEAR, "rt", encoding="utf-8") as file:
                mined = json.load(file)
            self.passages, self.near = mined["passages"], mined["near"]
        return bool(self.near)

    def posed(self) -> Iterator[tuple[questions.Record, dict[str, Any]]]:
        """Questions with their passages, without end."""
        pairs = [(record, one) for record in self.records for one in record["questions"]
                 if one["kind"] in REPEATS and len(self.near.get(one["question"], ())) >= OTHERS]  # fmt: skip
        weights = [REPEATS[one["kind"]] for _, one in pairs]
        while True:
            yield from self.dice.choices(pairs, weights, k=len(pairs))

    def group(self, record: questions.Record, entry: dict[str, Any]) -> list[LearningRow]:
        """Rows of a question: its own passage first, then rows that do not answer."""
        has_heading = self.dice.random() < HEADED
        others = (self.passages[n] for n in self.dice.sample(self.near[entry["question"]], OTHERS))
        unanswered = [one for one in record["questions"] if one["kind"] == "absent"][:1]
        return [
            self.row(entry, record, has_heading),
            *(self.row({"question": entry["question"]}, other, has_heading) for other in others),
            *(self.row(one, record, has_heading) for one in [*unanswered, *self.twin(entry, record)]),
        ]

    def twin(self, entry: dict[str, Any], record: questions.Record) -> list[dict[str, Any]]:
        """A twin of a question, if it has one and says enough to be told from it."""
        if entry["kind"] == "other":
            return []
        twin = self.twins.twin(entry["question"], record["text"], record["source"], self.dice)
        return [{"question": twin.question}] if twin else []

    def of_squad(self, twins: float) -> LearningRow:
        """A row of SQuAD; ``twins`` is the share of questions that are twins, where they can be."""
        record = self.dice.choice(self.squad)
        entry = self.dice.choice(record["questions"])
        if self.dice.random() < twins:
            entry = next(iter(self.twin(entry, record)), entry)
        return self.row(entry, record, self.dice.random() < HEADED, LONG_ROW)

    def of_unanswered(self) -> LearningRow:
        record = self.dice.choice(self.unanswered)
        return self.row(self.dice.choice(record["questions"]), record, self.dice.random() < HEADED, LONG_ROW)

    def of_mixture(self) -> LearningRow:
        if self.dice.random() < len(self.marked) / (len(self.marked) + len(self.mixed)):
            return self.dice.choice(learning_rows(self.dice.choice(self.marked).example, LONG_ROW))
        record, entry = self.dice.choice(self.mixed)
        return self.row(entry, record, False, LONG_ROW)

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

    def row(self, entry: dict[str, Any], record: questions.Record, headed: bool, most: int = MAX_ROW) -> LearningRow:
        """A question with a passage; without `sentences` the passage does not answer.

        A passage that is too long is cut at its end, or at its beginning where its end answers.
        """
        question = self.tokenizer.question(entry["question"])
        path = (record.get("path") or "").split(" > ")[-1] or record["title"]
        heading = self.tokens(f"{path}:").ids[: HEADING if headed and path else 0]
        passage, room = self.tokens(record["text"]), most - len(question) - len(heading) - 3
        answers = [touched(passage.offsets, record["sentences"][n]) for n in entry.get("sentences", ())]
        needed = np.concatenate(answers) if answers else np.zeros(1, np.int64)
        first = 0 if needed.max() < room else max(0, min(len(passage) - room, int(needed.min()) - MARGIN))
        offsets = passage.offsets[first : first + room]
        row = reader.join(question, passage.ids[first : first + room], heading)
        evidence = np.full(len(row), UNSAID, np.int8)
        evidence[row.passage] = 0
        start = end = 0
        if "sentences" in entry:
            for n in entry["sentences"]:
                evidence[row.passage.start + touched(offsets, record["sentences"][n])] = 1
            inside = touched(offsets, entry["span"]) if entry.get("span") else []
            start, end = (row.passage.start + inside[n] for n in (0, -1)) if len(inside) else (UNKNOWN, UNKNOWN)
        numbers = np.full(len(row), NO_SENTENCE, np.int64)
        for n, place in enumerate(record.get("sentences", ())):
            numbers[row.passage.start + touched(offsets, place)] = n
        return AskedRow(row.input_ids, row.token_type_ids, int(start), int(end), evidence, numbers)

    def tokens(self, text: str) -> PassageTokens:
        return self._tokens.setdefault(text, self.tokenizer.passage(text))


def squad_records(
    content: squad.QuestionSet, is_wanted: Callable[[squad.SquadQuestion], bool]
) -> list[questions.Record]:
    """Paragraphs of a SQuAD file with the questions that are wanted, in the form of questions as people ask them."""
    entries = defaultdict[str | None, list[dict[str, Any]]](list)
    texts = {one.id: one for one in content.paragraphs}
    edges = {one.id: [0, *sentences.beginnings(one.text), len(one.text)] for one in content.paragraphs}
    for one in filter(is_wanted, content.questions):
        entry: dict[str, Any] = {"kind": "squad", "question": one.text}
        if one.answers:
            place = one.starts[0], one.starts[0] + len(one.answers[0])
            if place[0] < 0 or texts[one.document or ""].text[slice(*place)] != one.answers[0]:
                continue
            pairs = enumerate(itertools.pairwise(edges[one.document or ""]))
            entry |= {"span": place, "sentences": [n for n, (a, b) in pairs if a < place[1] and b > place[0]]}
        entries[one.document].append(entry)
    return [
        {"text": one.text, "title": one.title.replace("_", " "), "path": "", "source": one.title,
         "sentences": list(itertools.pairwise(edges[one.id])), "questions": entries[one.id]}
        for one in content.paragraphs if entries[one.id]
    ]  # fmt: skip


def touched(offsets: Any, place: Any) -> Any:
    """Numbers of the wordpieces that share a character with a place."""
    return np.flatnonzero((offsets[:, 0] < place[1]) & (offsets[:, 1] > place[0]))


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
