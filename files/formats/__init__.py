"""File formats: each module turns one open file into documents and into lines it had to skip.

A reader is a function `(SourceFile) -> Iterator[Item]`. It reads forward only and holds no more than one document of
formats that can be streamed (txt with pages, jsonl, csv, mbox); the others are bounded by `SourceFile.whole`.
A format's module is imported when the first file of it is met: their libraries take a while to load.
"""

import importlib
import mimetypes
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from shardqa import extras
from shardqa.errors import BadDocument, ShardqaError
from shardqa.files.fitting import fitting
from shardqa.files.formats import code
from shardqa.files.formats.faults import is_of_file, why
from shardqa.files.source_file import Item, Lost, Skipped, SourceFile, Textless

Reader = Callable[[SourceFile], Iterator[Item]]


@dataclass(frozen=True, slots=True)
class Format:
    title: str  # as messages and the page name it
    suffixes: tuple[str, ...]
    module: str  # below this package
    function: str = "read"
    needs: str = ""  # the extra of the package that brings its library
    begins: tuple[bytes, ...] = ()  # what each of its files begins with, where that is sure

    def reader(self) -> Reader:
        """Imports the format's module. Raises BadDocument where its library is not installed."""
        try:
            reader: Reader = getattr(importlib.import_module(f"{__name__}.{self.module}"), self.function)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "shardqa":
                raise
            remedy = extras.remedy(self.needs or "loader")
            raise BadDocument(f"{self.title} needs the library {error.name}; {remedy}") from error
        return reader


ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
FORMATS = (
    Format("text", (".txt", ".text"), "text"),
    Format("Markdown", (".md", ".markdown"), "markdown"),
    Format("notebooks", (".ipynb",), "notebook"),
    Format("HTML", (".html", ".htm", ".xhtml"), "html"),
    Format("reStructuredText", (".rst",), "rst"),
    Format(
        "AsciiDoc, Org, LaTeX, calendars",
        (".adoc", ".asciidoc", ".org", ".tex", ".typ", ".wiki", ".mediawiki", ".ics", ".vcf"),
        "markups",
    ),
    Format("DocBook, Mallard", (".xml", ".docbook", ".dbk", ".page"), "xml"),
    Format("manual pages", (".man", ".mdoc", ".roff", *(f".{n}" for n in range(1, 9))), "man"),
    Format("lines of JSON", (".jsonl", ".ndjson"), "jsonl"),
    Format("JSON", (".json",), "squad"),
    Format("CSV", (".csv", ".tsv", ".tab"), "table"),
    Format("PDF", (".pdf",), "pdf.reader"),
    Format("Word", (".docx", ".docm"), "docx", begins=(ZIP,)),
    Format("Word of 1997 to 2003", (".doc", ".dot"), "doc", begins=(OLE,)),
    Format("RTF", (".rtf",), "rtf"),
    Format("PowerPoint", (".pptx", ".pptm"), "pptx", begins=(ZIP,)),
    Format("workbooks", (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "sheets", begins=(ZIP, OLE)),
    Format("OpenDocument", (".odt", ".ott", ".odp", ".odg"), "odt"),
    Format("EPUB", (".epub",), "epub"),
    Format("e-mail", (".eml",), "mail"),
    Format("Outlook's messages", (".msg",), "msg"),
    Format("mailboxes", (".mbox",), "mail", "read_mbox"),
    Format("subtitles", (".srt", ".vtt"), "subtitles"),
    Format("zip archives", (".zip",), "archive", "read_zip"),
    Format("tar archives", (".tar", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz"), "archive", "read_tar"),
    Format("source code", tuple(code.SUFFIXES), "code"),
)
PICTURES = Format("pictures", (".png", ".jpg", ".jpeg", ".tif", ".tiff"), "picture", needs="ocr")
"""Read only where text in pictures is to be recognized: a folder's pictures are rarely pages."""
BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}
SUFFIXES = tuple(BY_SUFFIX)
TOLD = (
    "txt md ipynb html rst adoc org tex DocBook Mallard man ics jsonl json csv tsv pdf docx doc rtf pptx xlsx xls ods "
    "odt odp odg epub eml msg mbox srt vtt zip tar, code"
)
"""The formats for messages; each may be gzipped."""
LEFT = re.compile(r"(?:.*/)?(?:thumbs\.db|ehthumbs\.db|desktop\.ini|\.ds_store|~\$[^/]*)")
"""Files that Windows, macOS and Office leave beside people's own."""
SIGNED = re.compile(r".*\.(?:p7[cms]|sig|gpg|pgp|asc)")
KINDS = {"image": "pictures", "audio": "recordings", "video": "films", "font": "fonts"}
MADE = re.compile(
    r"(?:.*/)?(?:searchindex\.js|search_index\.js(?:on)?|objects\.inv|[^/]+\.(?:min\.(?:js|css)|js\.map|css\.map|pyc))"
)
"""Files that a site's generator writes for a browser, or a compiler for itself."""


def textless(name: str, ocr: bool = False) -> str:
    """Returns what files of this name are, in the plural, if they hold no text (`pictures`); else an empty text."""
    bare = bare_name(name).lower()
    if LEFT.fullmatch(bare):
        return "files of the desktop"
    if SIGNED.fullmatch(bare):
        return "signatures and cipher texts"
    if MADE.fullmatch(bare):
        return "generated files"
    if ocr and format_of(name, ocr) is PICTURES:
        return ""
    media = mimetypes.guess_type(bare)[0] or ""
    return KINDS.get(media.partition("/")[0], "") if media != "video/mp2t" else ""  # .ts is TypeScript


def format_of(name: str, ocr: bool = False) -> Format | None:
    """Returns the format by a file's name, `.gz` aside; None for an unknown one, and for pictures without `ocr`."""
    bare = bare_name(PurePath(name).name).lower()
    suffix = next((suffix for suffix in (".tar.bz2", ".tar.xz") if bare.endswith(suffix)), PurePath(bare).suffix)
    if not suffix and PurePath(bare).stem in code.NAMES:
        return BY_SUFFIX[".txt"]
    return PICTURES if ocr and suffix in PICTURES.suffixes else BY_SUFFIX.get(suffix)


def bare_name(name: str) -> str:
    return name[:-3] if name.lower().endswith(".gz") else name


def read(source: SourceFile, format: Format | None = None) -> Iterator[Item]:
    """Reads a file by its name, or by its content where the name says nothing; yields each fault as a Skipped."""
    format = format or format_of(source.name, source.ocr)
    if (format is None or LEFT.fullmatch(source.name.lower())) and (kind := textless(source.name)):
        yield Textless(source.label, kind)
        return
    try:
        if not source.peek(1):
            yield Textless(source.label, "empty files")
            return
        real = _as_it_begins(source, format) if format is not None else _by_content(source)
        yield from fitting(real.reader()(source))
        yield from [Lost(source.label, source.guess)] * bool(source.guess)
    except BaseException as error:
        if not is_of_file(error):
            raise
        is_told = isinstance(error, ShardqaError)
        yield Skipped(source.label, why(error) if is_told else f"it can't be read: {why(error)}")


def _as_it_begins(source: SourceFile, format: Format) -> Format:
    """Returns the real format of an Office file: it may be a page or a CSV for Excel, or a docx called .doc."""
    if not format.begins or source.peek(8).startswith(format.begins):
        return format
    try:
        by_content = _by_content(source)
    except BadDocument:
        return format
    plain = BY_SUFFIX[".csv"] if format.module == "sheets" else format
    return plain if by_content.module == "text" else by_content


def _by_content(source: SourceFile) -> Format:
    """Returns the format by the content. Raises BadDocument, which says what to do, where no reader reads it."""
    from shardqa.files.formats import content

    return BY_SUFFIX[content.suffix_of(source)]
