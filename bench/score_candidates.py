"""Candidates of whole corpora for `shardqa-models calibrate`: questions as people ask them, each once more without the
passages that answer it, and twins of those in the text's words, as keywords and aloud.

    python bench/score_candidates.py models/reader-v4-int8 build/scores
    shardqa-models calibrate models/reader-v4-int8 --keep-order --candidates build/scores/seeds.jsonl ...

The corpora are the manuals of `wordings.py`, the sources of `asked` that training held out, and SQuAD's dev paragraphs;
ranked with vectors, as shards do. A span is right by its words, or from a passage that has the quote of `wordings`. A
question without its passages that its first two candidates answer from another one is left out.
"""

import json
import random
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import ROOT
from kept_vectors import KeptVectors
from retrieval import ranked
from wordings import PARTS, Corpus, answering, corpus_of, documents_of, plain, read_questions

from shardqa import analysis, keys
from shardqa.analysis import query
from shardqa.gears_functions import named_rows
from shardqa.gears_functions.functions.answer import HEADING
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.passage_reading import Loaded, PassageReading, reading_of
from shardqa.models import reader
from shardqa.models.reading_record import SpanRecord
from shardqa.models.session import ReaderSession
from shardqa.models.tokenizer import Tokenizer
from shardqa_toolchain import squad
from shardqa_toolchain.calibrate import holds, is_right
from shardqa_toolchain.twins import TwinMaker

sys.path.append(str(ROOT / "toolchain" / "recipes"))
asked: Any = import_module("questions")

K = 13  # passages read
ASKED, POSED, OF_SQUAD, TRICKS = 32, 20, 140, 40  # passages or questions of a corpus
LONGEST = 1_700  # characters of a paragraph that a row holds
SOURCES = {"pi-hole": "pi-hole/docs", "nhs": "nhsuk/nhsuk-service-manual", "artsy": "artsy/README"}
DEV = ROOT.parent / "shared" / "data" / "squad"


@dataclass(frozen=True, slots=True)
class Entry:
    """A question of a corpus."""

    id: str
    kind: str
    style: str
    text: str
    answers: Sequence[str]
    passages: Collection[str]  # keys of those that answer
    quote: str = ""


class Asking:
    """Asks the questions of one corpus."""

    def __init__(self, name: str, corpus: Corpus, encoder: KeptVectors, folder: Path) -> None:
        self._name, self._corpus, self._encoder = name, corpus, encoder
        self._tokenizer, self._session = Tokenizer.load(folder), ReaderSession(folder, 1)
        self._dice = random.Random(7)
        titles = {one.title for one in corpus.passages.values()}
        self._titles = {term for title in titles for term in analysis.analyse(title).content}
        every = sorted(asked.records(), key=itemgetter("source"))
        others = [one for one in every if not str(one["source"]).startswith(SOURCES.get(name, "-"))]
        texts = {source: [one["text"] for one in group] for source, group in groupby(others, itemgetter("source"))}
        self._maker = TwinMaker({**texts, name: [one.text for one in corpus.passages.values()]})

    def records(self, entry: Entry) -> Iterator[dict[str, Any]]:
        own = self._record(entry)
        yield own
        if entry.kind != "answerable":
            return
        without = self._record(replace(entry, kind="absent", answers=(), quote=""), entry.passages)
        if not any(_is_right(one["text"], entry.answers) for one in without["candidates"][:2]):
            yield without
        twin = self._twin(entry) if entry.style != "other" else None
        if twin is not None:
            yield {**self._record(replace(entry, kind="twin", text=twin, answers=(), quote="")), "of": entry.text}

    def _twin(self, entry: Entry) -> str | None:
        """Half of the other names come from this corpus, half from elsewhere."""
        source = self._name if self._dice.random() < 0.5 else ""
        text = self._corpus.passages[min(entry.passages)].text
        twin = self._maker.twin(entry.text, text, source, self._dice, near=0.25)
        return twin.question if twin is not None and twin.question.lower() != entry.text.lower() else None

    def _record(self, entry: Entry, without: Collection[str] = ()) -> dict[str, Any]:
        text = keys.normalise_question(entry.text)
        terms, near = query(text), self._encoder.question(text)
        found = ranked([self._corpus.index], terms, K + len(without), near)
        best = [(key, score) for key, score in found if key not in without][:K]
        reads = self._read(text, [replace(self._corpus.passages[key], score=score) for key, score in best])
        spans = sorted((span for one in reads for span in one.spans), key=lambda span: -span.margin)
        df = self._corpus.index.statistics(terms).df
        gone = {term for key in without for term in analysis.analyse(self._corpus.passages[key].text).content}
        return {
            "id": entry.id,
            "domain": self._name,
            "kind": entry.kind,
            "style": entry.style,
            "question": entry.text,
            "answers": entry.answers,
            "absent": [
                one
                for one in terms.terms
                if df.get(one, 0) <= (len(without) if one in gone else 0) and one not in self._titles
            ],
            "ranks": [score for _, score in best],
            "corpus": len(self._corpus.index),
            "candidates": [_of_span(span, entry) for span in spans],
            "passages": [self._of_passage(one) for one in reads],
        }

    def _read(self, question: str, loaded: Sequence[Loaded]) -> list[PassageReading]:
        ids = self._tokenizer.question(question)
        pieces = [named_rows.read_of(one, self._tokenizer.passage(one.text), question) for one in loaded]
        rows = [reader.join(ids, own.ids, self._heading(one)) for one, own in zip(loaded, pieces, strict=True)]
        every = zip(loaded, pieces, rows, self._session.read_all(rows), strict=True)
        return [reading_of(*one) for one in every]

    def _heading(self, passage: Loaded) -> np.ndarray[Any, np.dtype[np.int32]]:
        return self._tokenizer.passage(f"{passage.heading}:" if passage.heading else "").ids[:HEADING]

    def _of_passage(self, read: PassageReading) -> dict[str, Any]:
        one = read.passage
        places = [(own.start - one.start, own.end - one.start, own.logit, own.evidence) for own in one.sentences]
        above = f"{one.title}\n{self._corpus.passages[one.key].heading}"
        numbers = {name: getattr(one, name) for name in ("null_logit", "rank_score", "relevance")}
        return {"key": one.key, "above": above, "text": one.text, "sentences": places, **numbers}


def _of_span(span: SpanRecord, entry: Entry) -> dict[str, Any]:
    numbers = {
        name: getattr(span, name) for name in ("span_logit", "null_logit", "rank_score", "evidence", "relevance")
    }
    of_quote = bool(entry.quote) and entry.quote in plain(span.passage.text)
    is_it = of_quote or _is_right(span.text, entry.answers)
    return {"text": span.text, "said": span.said, "passage": span.passage.key, "right": is_it, **numbers}


def _is_right(text: str, answers: Sequence[str]) -> bool:
    return bool(answers) and (is_right(text, answers) or holds(text, answers))


def of_texts(texts: Sequence[tuple[str, str, str]], encoder: KeptVectors) -> Corpus:
    """A corpus of passages as they are; of each its text, title and headings."""
    corpus = Corpus(Index(), {})
    for n, (text, title, path) in enumerate(texts):
        key = keys.passage("scores", str(n), 0)
        corpus.index.put(key, title, text, len(text), path=path)
        corpus.index.put_vectors(key, encoder.passage(title, text))
        corpus.passages[key] = Loaded(key, 0.0, text, 0, title, None, [], "", path.split(" > ")[-1])
    encoder.save()
    return corpus


def of_asked(name: str, encoder: KeptVectors) -> tuple[Corpus, list[Entry]]:
    records = [one for one in asked.records() if str(one["source"]).startswith(SOURCES[name])]
    pool = [one for one in asked.pool() if str(one["source"]).startswith(SOURCES[name])]
    every = {one["text"]: (one["text"], one["title"], one.get("path") or "") for one in [*records, *pool]}
    corpus, entries = of_texts([*every.values()], encoder), list[Entry]()
    for record in random.Random(0).sample(records, min(ASKED, len(records))):
        own = {key for key, one in corpus.passages.items() if asked.are_twins(one.text, record["text"])}
        for one in record["questions"]:
            kind, style = ("trick", "text") if one["kind"] == "absent" else ("answerable", one["kind"])
            spans = [one["span"]] if one.get("span") else []
            places = [*spans, *(record["sentences"][n] for n in one.get("sentences", ()))]
            answers = [record["text"][start:end] for start, end in places]
            entries.append(Entry(record["id"], kind, style, one["question"], answers, own))
    return corpus, entries


def of_squad(encoder: KeptVectors) -> tuple[Corpus, list[Entry]]:
    dev = squad.read_squad(DEV / "dev-v1.1.json.gz")
    short = [one for one in dev.paragraphs if len(one.text) <= LONGEST]
    corpus = of_texts([(one.text, one.title.replace("_", " "), "") for one in short], encoder)
    places = dict(zip((one.id for one in short), corpus.passages, strict=True))
    posed = [one for one in dev.questions if one.answers and one.document in places]
    tricks = [one for one in squad.read_squad(DEV / "dev-v2.0.json.gz").questions if not one.answers]
    return corpus, [
        *(
            Entry(one.id, "answerable", "text", one.text, one.answers, {places[one.document or ""]})
            for one in random.Random(0).sample(posed, OF_SQUAD)
        ),
        *(Entry(one.id, "trick", "text", one.text, (), ()) for one in random.Random(0).sample(tricks, TRICKS)),
    ]


def of_manual(name: str, encoder: KeptVectors, cache: Path) -> tuple[Corpus, list[Entry]]:
    corpus = corpus_of(documents_of(name, cache), encoder)
    encoder.save()
    posed = [one for one in read_questions() if one.corpus == name]
    return corpus, [
        Entry(one.quote[:40], "answerable", style, text, [one.quote], answering(corpus, one), one.quote)
        for one in random.Random(0).sample(posed, min(POSED, len(posed)))
        for style, text in one.wordings.items()
    ]


def main(
    folder: Annotated[Path, typer.Argument(help="folder of an ONNX reader")],
    out: Annotated[Path, typer.Argument(help="folder of the files written")],
    cache: Annotated[Path, typer.Option(help="folder of packages and vectors that are kept")] = Path("build/wordings"),
    only: Annotated[list[str] | None, typer.Option(help="a corpus; all unless given")] = None,
) -> None:
    """Write a file for each corpus."""
    out.mkdir(parents=True, exist_ok=True)
    for name in only or [*SOURCES, "squad", *PARTS]:
        encoder = KeptVectors(cache / f"{name}.json")
        corpus, entries = (
            of_asked(name, encoder)
            if name in SOURCES
            else of_squad(encoder)
            if name == "squad"
            else of_manual(name, encoder, cache)
        )
        asking = Asking(name, corpus, encoder, folder)
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for entry in entries:
                for record in asking.records(entry):
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
        print(name, len(corpus.index), len(entries), flush=True)


if __name__ == "__main__":
    typer.run(main)
