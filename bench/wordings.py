"""Questions on real manuals, each in four wordings: how often the right passage is found, with words alone and with
vectors, and how often the reader answers from it.

    python bench/wordings.py [--cache build/wordings] [--answers]

`wordings.jsonl` has the questions, written by hand from the pages: the text's own words, other words, keywords, and as
people ask aloud; each names its file and a short quote of the passage that answers. The manuals come from Debian's
packages (`apt-get download`) and are read, cut and ranked as shards do, each package a corpus. Half of the questions,
by their quotes' checksums, are held out: weights are chosen on the others. Vectors are kept in the cache.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated
from zlib import crc32

import numpy as np
import typer
from common import ROOT
from kept_vectors import KeptVectors
from retrieval import ranked
from served import REACH, Served

from shardqa import keys, places
from shardqa.analysis import query
from shardqa.files.folders import SourceFiles
from shardqa.gears_functions.index.corpus_index import Index
from shardqa.gears_functions.passage_reading import Loaded
from shardqa.gears_functions.splitting import split
from shardqa.models import shipped
from shardqa.models.tokenizer import Tokenizer
from shardqa.schema import Document
from shardqa.statistics import QuestionVector
from shardqa_toolchain.calibrate import holds

WORDINGS = ("text", "other", "keywords", "aloud")
AT = (1, 5, 20)
PARTS = {  # of each package what is asked: English, and no reference of thousands of generated pages
    "gimp-help-en": ["usr/share/gimp/2.0/help/en"],
    "gnucash-docs": ["usr/share/doc/gnucash-docs/gnucash-guide-en", "usr/share/doc/gnucash-docs/gnucash-help-en"],
    "libreoffice-help-en-us": [f"usr/share/libreoffice/help/en-US/text/{part}" for part in ("swriter", "scalc")],
    "exim4-doc-html": ["usr/share/doc/exim4-doc-html/spec_html"],
    "bind9-doc": ["usr/share/doc/bind9-doc/arm"],
    "libvirt-doc": ["usr/share/doc/libvirt-doc/html/kbase", "usr/share/doc/libvirt-doc/html/manpages"],
    "lilypond-doc-html": [
        f"usr/share/doc/lilypond/html/Documentation/{part}" for part in ("learning", "usage", "music-glossary")
    ],
    "kicad-doc-en": ["usr/share/doc/kicad"],
    "fish-common": ["usr/share/doc/fish"],
    "seeds": ["documents"],
}


@dataclass(frozen=True, slots=True)
class Posed:
    corpus: str
    file: str
    quote: str
    wordings: dict[str, str]

    @property
    def is_held_out(self) -> bool:
        return crc32(self.quote.encode()) % 2 == 0


@dataclass(slots=True)
class Corpus:
    index: Index
    passages: dict[str, Loaded]  # by key


def read_questions() -> list[Posed]:
    records = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text().splitlines()]
    return [Posed(r["corpus"], r["file"], r["quote"], {name: r[name] for name in WORDINGS}) for r in records]


def documents_of(package: str, cache: Path) -> Iterator[Document]:
    """The pages of a package that are asked, downloaded once; other languages' have a dot more in their names."""
    folder = ROOT / "seeds" if package == "seeds" else cache.absolute() / package
    if not folder.exists():
        debs = cache.absolute() / "debs"
        debs.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", package], cwd=debs, check=True)
        subprocess.run(["dpkg", "-x", str(next(debs.glob(f"{package}_*.deb"))), str(folder)], check=True)
    for page in sorted(page for part in PARTS[package] for page in (folder / part).rglob("*.*")):
        if page.suffix in (".html", ".md") and "." not in page.stem and not page.is_symlink():
            items = SourceFiles([page], prefix=f"{page.parent.relative_to(folder)}/")
            yield from (item for item in items if isinstance(item, Document))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.load(shipped.folder())


def corpus_of(documents: Iterable[Document], encoder: KeptVectors | None) -> Corpus:
    corpus = Corpus(Index(), {})
    for document in documents:
        marks = places.check(places.encode(document.places))
        for n, passage in enumerate(split(document.text, tokenizer(), marks)):
            key, path = keys.passage("wordings", document.id, n), places.below(document.title, passage.path)
            corpus.index.put(key, document.title, passage.text, passage.end, path=path)
            heading = path.rpartition(places.BELOW)[2]
            within = places.within(marks, passage.start, passage.end)
            corpus.passages[key] = Loaded(
                key, 0.0, passage.text, passage.start, document.title, None, within, "", heading
            )
            if encoder is not None:
                corpus.index.put_vectors(key, encoder.passage(document.title, passage.text))
    return corpus


def ranks(corpus: Corpus, question: str, near: QuestionVector | None) -> list[tuple[str, float]]:
    best: list[tuple[str, float]] = ranked([corpus.index], query(keys.normalise_question(question)), AT[-1], near)
    return best


def answering(corpus: Corpus, posed: Posed) -> set[str]:
    """Keys of the passages that answer."""
    return {key for key, one in corpus.passages.items() if posed.quote in plain(one.text)}


class Figures:
    def __init__(self, reader: Served | None) -> None:
        self._reader = reader
        # Of each question: the place of its first passage, and whether an answer of one is given, with the quote, and
        # whether the quote is shown, given or not.
        self._outcomes: dict[tuple[bool, str, str], list[tuple[int, bool, bool, bool]]] = {}

    def ask(self, corpus: Corpus, posed: Posed, encoder: KeptVectors) -> None:
        right = answering(corpus, posed)
        for wording, text in posed.wordings.items():
            for way, near in (("words", None), ("vectors", encoder.question(text))):
                found = ranks(corpus, text, near)
                place = next((n for n, (key, _) in enumerate(found) if key in right), AT[-1])
                said = self._said(text, found[:REACH], corpus, posed.quote) if near else (False,) * 3
                self._outcomes.setdefault((posed.is_held_out, wording, way), []).append((place, *said))

    def _said(
        self, question: str, nearest: Sequence[tuple[str, float]], corpus: Corpus, quote: str
    ) -> tuple[bool, bool, bool]:
        if self._reader is None:
            return False, False, False
        passages = {key: replace(corpus.passages[key], score=score) for key, score in nearest}
        answer = self._reader.answer(question, passages, len(corpus.index))
        is_shown = any(holds(part.text, [quote]) for part in answer.parts)
        return quote in plain(answer.passage or ""), is_shown and not answer.no_answer, is_shown

    def show(self) -> None:
        for (is_held_out, wording, way), outcomes in sorted(self._outcomes.items()):
            found, *said = np.array(outcomes).T
            recalls = [100 * float(np.mean(found < at)) for at in AT]
            answers = " ".join(f"{100 * one.mean():6.1f}" for one in said) if said[-1].any() else ""
            part = "held out" if is_held_out else "to fit on"
            print(f"{part:9} {wording:9} {way:8}", *(f"{one:6.1f}" for one in recalls), answers)


def main(
    cache: Annotated[Path, typer.Option(help="folder of packages and vectors that are kept")] = Path("build/wordings"),
    answers: Annotated[bool, typer.Option("--answers", help="answer, too, as served")] = False,
) -> None:
    """Prints recall at 1, 5 and 20 for each wording; with answers, given from a right passage, and with the quote, and
    the quote shown."""
    questions = read_questions()
    figures = Figures(Served() if answers else None)
    for name in dict.fromkeys(one.corpus for one in questions):
        encoder = KeptVectors(cache / f"{name}.json")
        corpus = corpus_of(documents_of(name, cache), encoder)
        own = [one for one in questions if one.corpus == name]
        losses = [one.quote for one in own if not answering(corpus, one)]
        print(
            f"{name}: {corpus.index.table.count_of_documents()} documents, {len(corpus.index)} passages, "
            f"{len(own)} questions",
            flush=True,
        )
        for quote in losses:
            print(f"  no passage has: {quote}")
        for one in own:
            figures.ask(corpus, one, encoder)
        encoder.save()
    print(f"recall@{'/'.join(map(str, AT))}, {len(questions)} questions")
    figures.show()


if __name__ == "__main__":
    typer.run(main)
