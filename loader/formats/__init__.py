"""File formats: each module turns one open file into documents and into lines it had to skip.

A reader is a function `(SourceFile) -> Iterator[Item]`. It reads forward only and holds no more than one document of
formats that can be streamed (txt with pages, jsonl, csv, mbox); the others are bounded by `SourceFile.whole`.
A format's module is imported when the first file of it is met: their libraries take a while to load.
"""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.loader.formats import code
from shardqa.loader.source_file import Item, Skipped, SourceFile

Reader = Callable[[SourceFile], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    title: str  # as messages and the page name it
    suffixes: tuple[str, ...]
    module: str  # below this package
    function: str = "read"
    needs: str = ""  # the extra of the package that brings its library

    def reader(self) -> Reader:
        """Raises BadDocument where its library is not installed."""
        try:
            found: Reader = getattr(importlib.import_module(f"{__name__}.{self.module}"), self.function)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "shardqa":
                raise
            extra = f"shardqa[{self.needs}]" if self.needs else "shardqa"
            raise BadDocument(f"{self.title} needs the library {error.name}: pip install '{extra}'") from error
        return found


FORMATS = (
    Format("text", (".txt", ".text"), "text"),
    Format("Markdown", (".md", ".markdown"), "markdown"),
    Format("HTML", (".html", ".htm", ".xhtml"), "html"),
    Format("reStructuredText", (".rst",), "rst"),
    Format("lines of JSON", (".jsonl", ".ndjson"), "jsonl"),
    Format("SQuAD's JSON", (".json",), "squad"),
    Format("CSV", (".csv", ".tsv", ".tab"), "table"),
    Format("PDF", (".pdf",), "pdf.reader"),
    Format("Word", (".docx", ".docm"), "docx"),
    Format("PowerPoint", (".pptx", ".pptm"), "pptx", needs="formats"),
    Format("workbooks", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "sheets"),
    Format("OpenDocument text", (".odt", ".ott"), "odt"),
    Format("EPUB", (".epub",), "epub"),
    Format("e-mail", (".eml",), "mail"),
    Format("mailboxes", (".mbox",), "mail", "read_mbox"),
    Format("subtitles", (".srt", ".vtt"), "subtitles"),
    Format("zip archives", (".zip",), "archive", "read_zip"),
    Format("tar archives", (".tar", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz"), "archive", "read_tar"),
    Format("source code", tuple(code.SUFFIXES), "code"),
)
BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}
SUFFIXES = tuple(BY_SUFFIX)
TOLD = "txt md html rst jsonl json (SQuAD) csv tsv pdf docx pptx xlsx xls ods odt epub eml mbox srt vtt zip tar, code"
"""The formats for messages; each may be gzipped."""


def format_of(name: str) -> Format | None:
    """By the name of a file, `.gz` aside; None for one that is not known."""
    bare = bare_name(PurePath(name).name).lower()
    suffix = next((suffix for suffix in (".tar.bz2", ".tar.xz") if bare.endswith(suffix)), PurePath(bare).suffix)
    if not suffix and PurePath(bare).stem in code.NAMES:
        return BY_SUFFIX[".txt"]
    return BY_SUFFIX.get(suffix)


def bare_name(name: str) -> str:
    return name[:-3] if name.lower().endswith(".gz") else name


def unknown(name: str, shown: str) -> Skipped:
    suffix = PurePath(bare_name(name)).suffix
    return Skipped(shown, f"unknown suffix {suffix or '(none)'!r}; known: {TOLD}, each also with .gz")


def read(source: SourceFile, format: Format | None = None) -> Iterator[Item]:
    """The documents of a file, by its name unless its format is given; each fault as a Skipped."""
    format = format or format_of(source.name)
    if format is None:
        yield unknown(source.name, source.shown)
        return
    try:
        yield from format.reader()(source)
    except (BadDocument, DocumentTooLarge) as error:
        yield Skipped(source.shown, str(error))
    except RecursionError:
        yield Skipped(source.shown, "it nests too deep to be read")
    except OSError as error:
        yield Skipped(source.shown, f"can't be read: {error.strerror or error}")
