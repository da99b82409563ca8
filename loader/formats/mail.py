"""E-mail: eml is a document with its attachments as further ones; mbox is a document for each message."""

import email
import email.errors
import email.policy
import mimetypes
import re
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line
from shardqa.loader.encodings import decoded
from shardqa.loader.formats import html
from shardqa.loader.source_file import MAX_BINARY, Item, Lost, SourceFile, printable

HEADERS = ("From", "To", "Cc", "Date", "Subject")
FROM = re.compile(rb"From \S*\s.*\d\d:\d\d.*\d{4}")  # begins a message in an mbox file: an address, a date
MAX_MESSAGE = 64 * 1024 * 1024  # bytes of one message of an mbox file, attachments included
FAULTS = (email.errors.MessageError, LookupError, ValueError, TypeError, AttributeError, RecursionError)
"""What the standard library's parser raises of damaged messages."""


def read(source: SourceFile) -> Iterator[Item]:
    yield from _message(source, source.read_all(MAX_BINARY), source.name, source.label)


def read_mbox(source: SourceFile) -> Iterator[Item]:
    count = 0
    for count, message in enumerate(_messages(source), 1):
        place = f"{source.label} message {count}"
        if message is None:
            yield Lost(place, f"more than {MAX_MESSAGE:,} bytes; its text was left out")
        else:
            yield from _message(source, message, f"{source.name}/{count}", place)
    if not count:
        raise BadDocument("no message in it: none begins with a line 'From …'")


def _messages(source: SourceFile) -> Iterator[bytes | None]:
    """Each message of an mbox file; None for one past MAX_MESSAGE."""
    current: list[bytes] | None = None
    size, is_blank, rest = 0, True, b""
    for chunk in [*source.chunks(), b""]:
        *lines, rest = (rest + chunk).split(b"\n") if chunk else ([rest, b""] if rest else [b""])
        for line in lines:
            if is_blank and FROM.match(line):
                if current is not None:
                    yield b"\n".join(current) if size <= MAX_MESSAGE else None
                current, size = [], 0
            elif current is not None:
                size += len(line)
                if size <= MAX_MESSAGE:
                    current.append(line[1:] if line.startswith(b">From ") else line)
            is_blank = not line.strip()
    if current is not None:
        yield b"\n".join(current) if size <= MAX_MESSAGE else None


def _message(source: SourceFile, content: bytes, id_: str, place: str) -> Iterator[Item]:
    try:
        message = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(message, EmailMessage), "the default policy makes these"
        headers = {name: one_line(printable(str(message[name]))) for name in HEADERS if message[name]}
        composer = Composer()
        composer.block("\n".join(f"{name}: {value}" for name, value in headers.items()))
        texts, others = list[MIMEPart](), list[MIMEPart]()
        _sort(message, texts, others)
        has_body = [_body(composer, part) for part in texts].count(True) > 0
        attachments = [(part.get_filename() or "", part) for part in others]
    except FAULTS as error:
        raise BadDocument(f"not a message that can be read: {type(error).__name__} {error}") from error
    if not headers:
        raise BadDocument("not a message: it has no From, To, Date or Subject")
    if not has_body and not attachments:
        yield Lost(place, "the message has no text")
    metadata = {name.lower(): value for name, value in headers.items()}
    yield source.composed(composer, headers.get("Subject", ""), id_, metadata)
    for number, (name, part) in enumerate(attachments, 1):
        yield from _attachment(source, part, name or _unnamed(part, number), place, id_)


def _sort(part: MIMEPart, texts: list[MIMEPart], others: list[MIMEPart]) -> None:
    """All parts in their order: those that are the message's text, and files and messages that came with it."""
    kind = part.get_content_type()
    if kind == "multipart/alternative":
        chosen = part.get_body(("plain", "html"))
        inner, without = list[MIMEPart](), list[MIMEPart]()
        for below in part.iter_parts():
            _sort(below, without if chosen is not None else inner, others)
        texts += [chosen] if chosen is not None else inner
    elif part.is_multipart() and part.get_content_maintype() == "multipart":
        for below in part.iter_parts():
            _sort(below, texts, others)
    elif kind in ("text/plain", "text/html") and not part.is_attachment() and not part.get_filename():
        texts.append(part)
    else:
        others.append(part)


def _body(composer: Composer, part: MIMEPart) -> bool:
    before = len(composer)
    raw = part.get_payload(decode=True)
    charset = part.get_content_charset() or "utf-8"
    raw = raw if isinstance(raw, bytes) else b""
    try:
        text = raw.decode(charset)
    except (LookupError, UnicodeDecodeError):
        text = decoded(raw)
    text = text.replace("\r\n", "\n")
    if part.get_content_subtype() == "html":
        html.compose(text, composer)
    else:
        for paragraph in text.split("\n\n"):
            composer.block(paragraph)
    return len(composer) > before


def _unnamed(part: MIMEPart, number: int) -> str:
    kind = part.get_content_type()
    suffix = mimetypes.guess_extension(kind) if kind != "message/rfc822" else ""
    return f"attachment-{number}{suffix or ''}"


def _attachment(source: SourceFile, part: MIMEPart, name: str, place: str, id_: str) -> Iterator[Item]:
    try:
        content = part.get_content() if part.get_content_type() == "message/rfc822" else part.get_payload(decode=True)
    except FAULTS as error:
        yield Lost(f"{place}, attachment {printable(name)}", f"it can't be read: {error}")
        return
    if isinstance(content, EmailMessage):
        name, content = f"{name}.eml", content.as_bytes()
    if isinstance(content, bytes) and content:
        below = id_.removeprefix(source.name).lstrip("/")
        yield from source.inside(f"{below}/{name}" if below else name, content)
