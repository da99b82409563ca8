"""What a question's reader sees, as the shards would hand it over: candidates for fitting and testing the score.

    python bench/candidates.py --squad ../shared/data/squad/train-v1.1.json.gz --out /tmp/candidates.jsonl

One process, no Redis: the index, the splitter and the reader are those of the shards. A line is a question:
``{"id", "question", "answers", "candidates": [{"text", "span_logit", "null_logit", "rank_score"}, ...]}``.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from shardqa import keys
from shardqa.gears_functions.index import Index
from shardqa.gears_functions.splitting import Passage, split
from shardqa.gears_functions.terms import query
from shardqa.models import shipped, squad
from shardqa.models.reader import best_spans, join, null_logit
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer

SPANS = 2  # spans per passage: the second teaches the score what wrong ones look like
CORPUS = "candidates"


@dataclass
class Library:
    """Documents, split and indexed."""

    tokenizer: Tokenizer
    index: Index = field(default_factory=Index)
    passages: dict[str, Passage] = field(default_factory=dict)

    def add(self, document: str, title: str, text: str) -> None:
        for number, passage in enumerate(split(text, self.tokenizer)):
            key = keys.passage(CORPUS, document, number)
            self.passages[key] = passage
            self.index.put(key, title, passage.text, passage.end)

    def ask(self, session: ReaderSession, question: str, k: int) -> list[dict[str, Any]]:
        question = keys.normalise_question(question)
        asked = query(question)
        ranked = self.index.rank(asked, self.index.statistics(asked), k)
        ids = self.tokenizer.question(question)
        found = [self.passages[key] for key, _ in ranked]
        rows = [join(ids, passage.ids) for passage in found]
        return [
            {
                "text": passage.text[offsets[span.start_token, 0] : offsets[span.end_token, 1]],
                "span_logit": round(span.logit, 4),
                "null_logit": round(null_logit(start, end), 4),
                "rank_score": round(score, 4),
            }
            for passage, row, (start, end), (_, score) in zip(found, rows, session.read(rows), ranked, strict=True)
            for offsets in (self.tokenizer.passage(passage.text).offsets,)
            for span in best_spans(start, end, row.passage, SPANS)
        ]


def seeds(folder: Path) -> tuple[list[tuple[str, str, str]], list[squad.Question]]:
    documents = []
    for path in sorted((folder / "documents").glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").partition("\n")
        documents.append((path.stem, title.lstrip("# "), text))
    return documents, list(squad.read(folder / "questions.jsonl").questions)


def articles(
    files: Iterable[Path], paragraphs: int, absent: int, seed: int
) -> tuple[list[tuple[str, str, str]], list[squad.Question]]:
    """Whole articles drawn at random up to so many paragraphs, their questions, and `absent` questions of others.

    The first file's paragraphs are the documents. A question of an article left out has no answer here.
    """
    sets = [squad.read(path) for path in files]
    titles = sorted({paragraph.title for paragraph in sets[0].paragraphs})
    random.Random(seed).shuffle(titles)
    kept: set[str] = set()
    documents: list[tuple[str, str, str]] = []
    for title in titles:
        if len(documents) >= paragraphs:
            break
        kept.add(title)
        documents += [(p.id, title.replace("_", " "), p.text) for p in sets[0].paragraphs if p.title == title]
    questions = [q for found in sets for q in found.questions]
    inside = [q for q in questions if q.document and q.document.rpartition("/")[0] in kept]
    outside = [q for q in sets[0].questions if q.document and q.document.rpartition("/")[0] not in kept]
    strangers = random.Random(seed).sample(outside, min(absent, len(outside)))
    return documents, inside + [squad.Question(q.id, q.text, (), None) for q in strangers]


def drawn(questions: list[squad.Question], limit: int, seed: int) -> Iterator[squad.Question]:
    """At most `limit` each of the answerable, the unanswerable, and those of other articles."""
    kinds = [(bool(q.answers), q.document is None) for q in questions]
    for kind in sorted(set(kinds)):
        of_kind = [q for q, found in zip(questions, kinds, strict=True) if found == kind]
        yield from random.Random(seed).sample(of_kind, min(limit, len(of_kind)))


def main(
    out: Annotated[Path, typer.Option(help="File to write, JSON lines.")],
    squad_file: Annotated[list[Path], typer.Option("--squad", help="SQuAD files; the first has the documents.")] = [],  # noqa: B006
    seeds_folder: Annotated[Path | None, typer.Option("--seeds", help="The seeds folder instead.")] = None,
    reader: Annotated[Path, typer.Option(help="Folder of the reader.")] = shipped.folder(),  # noqa: B008
    paragraphs: Annotated[int, typer.Option(help="Documents to take.")] = 3000,
    limit: Annotated[int, typer.Option(help="Questions of each kind.")] = 1000,
    k: Annotated[int, typer.Option(help="Passages read per question.")] = 5,
    seed: int = 0,
) -> None:
    """Write the candidates of many questions."""
    documents, questions = seeds(seeds_folder) if seeds_folder else articles(squad_file, paragraphs, limit, seed)
    library = Library(Tokenizer.load(reader))
    for document in documents:
        library.add(*document)
    session = ReaderSession(reader)
    chosen = list(drawn(questions, limit, seed))
    began = time.perf_counter()
    with out.open("w", encoding="utf-8") as file:
        for question in chosen:
            record = {
                "id": question.id,
                "question": question.text,
                "answers": question.answers,
                "candidates": library.ask(session, question.text, k),
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    seconds = time.perf_counter() - began
    typer.echo(f"{len(chosen)} questions over {len(library.passages)} passages in {seconds:.0f} s", err=True)


if __name__ == "__main__":
    typer.run(main)
