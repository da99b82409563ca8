"""Tells a file's format by its content, where its name does not say, or what to do with the rest."""

import io
import re
import zipfile
from pathlib import PurePath

import olefile

from shardqa.errors import BadDocument
from shardqa.files import encodings
from shardqa.files.formats import mail, man
from shardqa.files.formats.faults import readable
from shardqa.files.formats.zipped import OLE
from shardqa.files.source_file import MAX_BINARY, SourceFile

LOOKED_AT = 8192  # bytes
BEGINNINGS = ((b"%PDF-", ".pdf"), (b"{\\rtf", ".rtf"), (b"BZh", ".tar"), (b"\xfd7zXZ\x00", ".tar"))
STREAMS = (("__properties_version1.0", ".msg"), ("WordDocument", ".doc"), ("Workbook", ".xls"), ("Book", ".xls"))
PARTS = (("word/", ".docx"), ("xl/", ".xlsx"), ("ppt/", ".pptx"))
OPEN = "opendocument."
MIMETYPES = (
    ("epub", ".epub"),
    (f"{OPEN}text", ".odt"),
    (f"{OPEN}spreadsheet", ".ods"),
    (f"{OPEN}presentation", ".odp"),
    (f"{OPEN}graphics", ".odg"),
)
MARKUP = re.compile(
    r"(?is)\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(<!doctype\s+html|<html|<\?xml|<!doctype|<[A-Za-z][\w:]*[\s>])"
)
HEADER = re.compile(
    r"(?:From|To|Cc|Subject|Date|Received|Return-Path|Message-ID|MIME-Version|Delivered-To|Reply-To): ", re.I
)
ADVICE = {
    **dict.fromkeys((".ppt", ".pps"), "save it as .pptx"),
    **dict.fromkeys((".sxi",), "save it as .pptx or .pdf"),
    **dict.fromkeys((".sxw", ".wpd", ".wps", ".abw", ".pages", ".lwp"), "save it as .odt, .docx or .pdf"),
    **dict.fromkeys((".numbers", ".wk1", ".123", ".gnumeric", ".sxc"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".pst", ".ost"), "save it as .eml or .mbox"),
    **dict.fromkeys((".mobi", ".azw", ".azw3", ".fb2", ".lit"), "convert it to .epub"),
    **dict.fromkeys((".ps", ".eps", ".djvu", ".dvi", ".xps", ".key"), "convert it to .pdf"),
    **dict.fromkeys((".7z", ".rar", ".cab", ".iso", ".deb", ".rpm", ".chm", ".zst", ".xz", ".bz2"), "unpack it"),
}
OTHERWISE = "convert it to PDF, HTML or plain text"


def suffix_of(source: SourceFile) -> str:
    """Returns the suffix of files with such content. Raises BadDocument, which says what to do, where none is read."""
    start = source.peek(LOOKED_AT)
    if not start.strip():
        return ".txt"
    own = next((suffix for beginning, suffix in BEGINNINGS if start.startswith(beginning)), "")
    if own:
        return own
    if start.startswith(b"PK\x03\x04"):
        return _of_zip(source)
    if start.startswith(OLE):
        return _of_ole(source)
    return ".tar" if start[257:262] == b"ustar" else _of_text(source.name, start)


def advice(name: str) -> str:
    """Says what to do with a file that no reader reads."""
    return ADVICE.get(PurePath(name.lower()).suffix, OTHERWISE)


def _of_zip(source: SourceFile) -> str:
    content = source.read_all(MAX_BINARY)
    source.rewind()
    with readable("a whole zip file"), zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        kind = archive.read("mimetype")[:200].decode("latin-1") if "mimetype" in names else ""
    if suffix := next((suffix for word, suffix in MIMETYPES if word in kind), ""):
        return suffix
    if OPEN in kind:
        raise BadDocument(f"an OpenDocument {kind.partition(OPEN)[2]}; {OTHERWISE}")
    return next((suffix for part, suffix in PARTS if any(name.startswith(part) for name in names)), ".zip")


def _of_ole(source: SourceFile) -> str:
    content = source.read_all(MAX_BINARY)
    source.rewind()
    with readable("a whole file of Microsoft Office"), olefile.OleFileIO(io.BytesIO(content)) as file:
        suffix = next((suffix for stream, suffix in STREAMS if file.exists(stream)), "")
        is_slides = file.exists("PowerPoint Document")
    if suffix:
        return suffix
    kind, do = ("PowerPoint's", ".pptx") if is_slides else ("", "PDF")
    raise BadDocument(f"an old {kind or 'Microsoft'} file; save it as {do}")


def _of_text(name: str, start: bytes) -> str:
    try:
        encoding = (
            encodings.encoding_of(start, is_complete=len(start) < LOOKED_AT)
            if b"\x00" not in start
            else encodings.bom(start)
        )
    except BadDocument:
        encoding = None
    text = start.decode(encoding, "replace") if encoding else ""
    controls = sum(character < " " and character not in "\t\n\r\f\x1b\b" for character in text)
    if not encoding or controls > len(text) // 100:
        bare = name.lower().removesuffix(".gz")
        suffix = PurePath(bare).suffix or "(none)"
        raise BadDocument(f"binary, and nothing in it says what it is (suffix {suffix!r}); {advice(bare)}")
    if (markup := MARKUP.match(text)) is not None:
        return ".html" if "html" in markup[1].lower() else ".xml"
    if mail.FROM.match(start):
        return ".mbox"
    lines = text.split("\n")
    if sum(bool(HEADER.match(line)) for line in lines[:40]) >= 2 and HEADER.match(lines[0]):
        return ".eml"
    return ".man" if man.is_troff(text) else ".txt"
