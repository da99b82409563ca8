"""Chooses the reader of a page by the type its server gives, and where that says little, by its address."""

import codecs
from http.client import HTTPMessage

from shardqa.loader import formats
from shardqa.loader.encodings import ENCODINGS
from shardqa.loader.formats import Format

VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream", "application/gzip", "application/x-gzip")
OFFICE = "application/vnd.openxmlformats-officedocument"
OPEN = "application/vnd.oasis.opendocument"
SUFFIXES = {  # by content type
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/x-rst": ".rst",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "text/vtt": ".vtt",
    "application/x-subrip": ".srt",
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/pdf": ".pdf",
    f"{OFFICE}.wordprocessingml.document": ".docx",
    f"{OFFICE}.presentationml.presentation": ".pptx",
    f"{OFFICE}.spreadsheetml.sheet": ".xlsx",
    "application/vnd.ms-excel": ".xls",
    f"{OPEN}.text": ".odt",
    f"{OPEN}.spreadsheet": ".ods",
    f"{OPEN}.presentation": ".odp",
    "application/msword": ".doc",
    "application/rtf": ".rtf",
    "text/rtf": ".rtf",
    "application/docbook+xml": ".docbook",
    "application/epub+zip": ".epub",
    "message/rfc822": ".eml",
    "application/mbox": ".mbox",
    "application/zip": ".zip",
    "application/x-tar": ".tar",
}
ALSO_TOLD = ("utf-8", "utf-16", "utf-32", "iso8859-1", "ascii")  # encodings that a server may name, beside ENCODINGS


def format_of(headers: HTTPMessage, path: str) -> Format | None:
    """Returns None for a type that no reader reads."""
    type_ = headers.get_content_type() if "Content-Type" in headers else ""
    by_name = formats.format_of(path)
    if type_ in VAGUE:
        return by_name or (formats.BY_SUFFIX[".txt"] if type_ == "text/plain" else None)
    if type_ in SUFFIXES:
        return formats.BY_SUFFIX[SUFFIXES[type_]]
    return by_name if type_.startswith("text/") or by_name is formats.BY_SUFFIX[".py"] else None


def as_utf8(content: bytes, headers: HTTPMessage) -> bytes:
    """A text in the encoding that its server names; as it is where that is none, or wrong: the reader finds out."""
    try:
        name = codecs.lookup(headers.get_content_charset() or "").name
        known = {codecs.lookup(one).name for one in (*ENCODINGS, *ALSO_TOLD)}
        return content.decode("cp1252" if name == "iso8859-1" else name).encode() if name in known else content
    except (LookupError, UnicodeError):
        return content
