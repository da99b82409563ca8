"""Chooses the reader of a page by the type its server gives, and where that says little, by its address."""

import codecs
from http.client import HTTPMessage

from shardqa.files import formats
from shardqa.files.encodings import ENCODINGS
from shardqa.files.formats import Format

VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream", "application/gzip", "application/x-gzip")
TYPES = {  # what each kind of content may be, and its suffix
    "text": "html .html markdown .md x-markdown .md x-rst .rst csv .csv tab-separated-values .tsv vtt .vtt rtf .rtf",
    "message": "rfc822 .eml",
    "application": "xhtml+xml .html x-subrip .srt json .json jsonl .jsonl x-ndjson .jsonl pdf .pdf msword .doc "
    "vnd.ms-excel .xls rtf .rtf docbook+xml .docbook epub+zip .epub mbox .mbox zip .zip x-tar .tar",
    "application/vnd.openxmlformats-officedocument.": "wordprocessingml.document .docx spreadsheetml.sheet .xlsx "
    "presentationml.presentation .pptx",
    "application/vnd.oasis.opendocument.": "text .odt spreadsheet .ods presentation .odp",
}
SUFFIXES = {
    f"{kind if kind[-1] == '.' else f'{kind}/'}{name}": suffix
    for kind, told in TYPES.items()
    for name, suffix in zip(told.split()[::2], told.split()[1::2], strict=True)
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
    """Returns a text as UTF-8 by the encoding that its server names; unchanged where that is missing or wrong."""
    try:
        name = codecs.lookup(headers.get_content_charset() or "").name
        names = {codecs.lookup(one).name for one in (*ENCODINGS, *ALSO_TOLD)}
        return content.decode("cp1252" if name == "iso8859-1" else name).encode() if name in names else content
    except (LookupError, UnicodeError):
        return content
