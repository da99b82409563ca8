"""F1 of the answer's span and of its evidence against long answers, the right paragraph given.

CLAPNQ's answers are sentences, several of one paragraph as a rule: "nearest" takes the nearest of a question's, "whole"
all of them as one text. PolicyQA's are clauses. "bound" is the best single sentence, chosen by looking at the answer:
no evidence of sentences can be much nearer. QUESTIONS=500 takes fewer of each. Skips what is absent.
"""

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import SHARED

from shardqa.machine import label
from shardqa.models import evidence, metrics, reader, sentences, shipped
from shardqa.models.scoring import Scoring
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad

FILES = ("clapnq", "policyqa-dev", "policyqa-test")
READER = Path(os.environ.get("READER", shipped.folder()))
LIMIT = int(os.environ.get("QUESTIONS", "900"))


class Reading:
    def __init__(self) -> None:
        self._tokenizer = Tokenizer.load(READER)
        self._session = ReaderSession(READER, len(os.sched_getaffinity(0)))
        self._scoring = Scoring.load(READER)

    def texts(self, question: str, text: str) -> tuple[str, str, list[str]]:
        """(the span, its evidence, each sentence by itself) of what fits a row."""
        asked = self._tokenizer.question(question)
        whole = self._tokenizer.passage(text)
        room = reader.MAX_ROW_TOKENS - 3 - len(asked)
        pieces = replace(whole, ids=whole.ids[:room], offsets=whole.offsets[:room])
        row = reader.join(asked, pieces.ids)
        (logits,) = self._session.read_all([row])
        numbers = sentences.numbers(text, pieces.offsets)
        span = reader.best_spans(logits.start, logits.end, row.passage, 1, sentences=numbers)[0]
        found = self._shown(
            evidence.likeliest(logits.within(row.passage), pieces.offsets, numbers, [span]),
            evidence.own(pieces.offsets, numbers, span),
            reader.null_logit(logits.start, logits.end),
            logits.relevance or 0.0,
        )
        cuts = [0, *sentences.beginnings(text), len(text)]
        return (
            text[pieces.offsets[span.start_token, 0] : pieces.offsets[span.end_token, 1]],
            " ".join(text[a:b] for a, b in found),
            [text[a:b] for a, b in itertools.pairwise(cuts)],
        )

    def _shown(
        self, parts: list[evidence.Sentence], own: evidence.Sentence, null: float, relevance: float
    ) -> list[tuple[int, int]]:
        """Characters of the span's own sentences and of those worth showing."""
        best = max(one.logit for one in parts)
        chances = [
            self._scoring.evidence_chance(one.logit - null, one.logit - best, one.evidence, relevance) for one in parts
        ]
        worth = evidence.worth_showing(np.array(chances), np.array([one.end - one.start for one in parts]))
        return [
            (one.start, one.end)
            for one, shows in zip(parts, worth, strict=True)
            if shows or own.start <= one.start < own.end
        ]


def best(texts: Sequence[str], answers: Sequence[str]) -> float:
    return max(metrics.f1(text, answers) for text in texts)


def main() -> None:
    print(f"evidence, {label()} (wanted: F1 CLAPNQ 55, PolicyQA 50)")
    reading = Reading()
    for name in FILES:
        file = SHARED / "data" / "domains" / f"{name}.json.gz"
        if not file.is_file():
            print(f"  skipped: {file} is not here")
            continue
        read = squad.read(file)
        texts = {paragraph.id: paragraph.text for paragraph in read.paragraphs}
        questions = [question for question in read.questions if question.answers][:LIMIT]
        rows = []
        for question in questions:
            assert question.document is not None, "SQuAD's questions are about a paragraph"
            span, found, each = reading.texts(question.text, texts[question.document])
            whole = [" ".join(dict.fromkeys(question.answers))]
            kinds = best([span], question.answers), best([found], question.answers), best([found], whole)
            rows.append((*kinds, best(each, question.answers)))
        means = (f"{100 * value:.1f}" for value in np.mean(rows, axis=0))
        columns = zip(("span", "evidence, nearest", "evidence, whole", "bound"), means, strict=True)
        print(
            f"  {name}, {len(questions)} questions: {', '.join(f'{kind} {mean}' for kind, mean in columns)}", flush=True
        )


if __name__ == "__main__":
    main()
