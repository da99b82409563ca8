"""E-mail: eml is a document with its attachments as further ones; mbox is a document for each message."""

import email
import email.errors
import email.policy
import mimetypes
import re
from collections.abc import Iterator
from email.message import EmailMessage, MIMEPart
from typing import Any

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer, one_line
from shardqa.files.encodings import bom, decoded, mended
from shardqa.files.formats import html, replies
from shardqa.files.formats.faults import apart, readable
from shardqa.files.source_file import MAX_BINARY, SNIFF, Item, Lost, SourceFile, Textless, printable
from shardqa.places import QUOTED

MAX_HEADER = 2_000  # characters of a header that are parsed, which takes the square of their number
MAX_PARTS = 1_000  # of a message that are read
MAX_EDGES = 10_000  # lines that begin with --, as each part does: the parser makes all parts
HEADERS = ("From", "To", "Cc", "Date", "Subject")
FROM = re.compile(rb"From \S*\s.*\d\d:\d\d.*\d{4}")  # begins a message in an mbox file: an address, a date
MAX_MESSAGE = 64 * 1024 * 1024  # bytes of one message of an mbox file, attachments included
HEADER = re.compile(rb"[!-9;-~]+[ \t]*:|[ \t]|>?From ")  # a header's line, or one that goes on with it
GAP = re.compile(rb"^([!-9;-~]+)[ \t]+:")  # of an old message
UTF_16 = re.compile(rb"(?i)charset=\"?utf-?16[a-z-]*\"?")
# without the quotes that such signs ask for
BOUNDARY = re.compile(rb"(?im)^((?:content-type:|[ \t]).*?\bboundary=)([^\s\";]*[()<>@,:/?=\[\]\\\\][^\s\";]*)")
CIPHER = "-----BEGIN PGP MESSAGE-----"
SAME = 0.5  # of the HTML's length, and of the words of both, that a text beside it has


class _Policy(email.policy.EmailPolicy):
    """The default policy, for headers cut to a bound."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        try:
            return super().header_fetch_parse(name, value[:MAX_HEADER])
        except (ValueError, OverflowError):  # a date that is none
            return super().header_fetch_parse("Subject", value[:MAX_HEADER])


POLICY = _Policy()


def read(source: SourceFile) -> Iterator[Item]:
    yield from _message(source, source.read_all(MAX_BINARY), source.name, source.label)


def read_mbox(source: SourceFile) -> Iterator[Item]:
    count = 0
    for count, message in enumerate(_messages(source), 1):
        place = f"{source.label} message {count}"
        if message is None:
            yield Lost(place, f"more than {MAX_MESSAGE:,} bytes; its text was left out")
        else:
            losses: list[str] = []
            with apart(losses, "the message"):
                yield from _message(source, message, f"{source.name}/{count}", place)
            yield from (Lost(place, loss) for loss in losses)
    if not count:
        raise BadDocument("no message in it: none begins with a line 'From …'")


def _messages(source: SourceFile) -> Iterator[bytes | None]:
    """Yields each message of an mbox file; None for one of more than MAX_MESSAGE bytes."""
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
    if content.count(b"\n--") > MAX_EDGES:
        raise BadDocument(f"more than {MAX_EDGES:,} lines that may begin a part; split the message")
    if bom(content) or b"\x00" in content[:SNIFF]:
        content = UTF_16.sub(b"charset=utf-8", decoded(content).encode())
    head, blank, body = content.lstrip().replace(b"\r\n", b"\n").partition(b"\n\n")
    head = b"\n".join(GAP.sub(rb"\1:", line) for line in head.split(b"\n") if HEADER.match(line))
    content = BOUNDARY.sub(rb'\1"\2"', head + blank + body)
    message = email.message_from_bytes(content, policy=POLICY)
    assert isinstance(message, EmailMessage), "this policy makes these"
    yield from of_message(source, message, id_, place)


def of_message(source: SourceFile, message: EmailMessage, id_: str, place: str) -> Iterator[Item]:
    """Yields the documents of a message (parsed, or made from another format). Raises BadDocument."""
    with readable("a message"):
        headers = {name: one_line(printable(str(message[name]))) for name in HEADERS if message[name]}
        composer = Composer()
        composer.block("\n".join(f"{name}: {value}" for name, value in headers.items()))
        texts, others = list[MIMEPart](), list[MIMEPart]()
        _sort(message, texts, others)
        is_cut = len(texts) + len(others) > MAX_PARTS
        before = len(composer)
        for part in texts:
            with apart(composer.lost, "a part of its text"):
                _body(composer, part)
        has_body = len(composer) > before
        attachments = [(part.get_filename() or "", part) for part in others]
    if not headers:
        raise BadDocument("not a message: it has no From, To, Date or Subject")
    for name, value in message.raw_items():
        if name.title() in HEADERS and len(str(value)) > MAX_HEADER:
            yield Lost(place, f"its {name} of {len(str(value)):,} characters was read to {MAX_HEADER:,}")
    if is_cut:
        yield Lost(place, f"it has more than {MAX_PARTS:,} parts; the rest was left out")
    if CIPHER in composer.text or message.get_content_type() == "multipart/encrypted":
        yield Textless(place, "encrypted messages")
        return
    if not has_body and not attachments:
        yield Lost(place, "the message has no text")
    metadata = {name.lower(): value for name, value in headers.items()}
    yield from source.composed(composer, headers.get("Subject", ""), id_, metadata)
    for number, (name, part) in enumerate(attachments, 1):
        yield from _attachment(source, part, name or _unnamed(part, number), place, id_)


def _sort(part: MIMEPart, texts: list[MIMEPart], others: list[MIMEPart]) -> None:
    """Sorts the parts, in their order, into the message's `texts` and `others`: files and messages with it."""
    kind = part.get_content_type()
    if len(texts) + len(others) > MAX_PARTS:
        return
    if kind == "multipart/alternative":
        body, page = part.get_body(("plain", "html")), part.get_body(("html",))
        if body is not None and page is not None and body is not page and _is_stub(body, page):
            body = page
        inner, without = list[MIMEPart](), list[MIMEPart]()
        for below in part.iter_parts():
            _sort(below, without if body is not None else inner, others)
        texts += [body] if body is not None else inner
    elif part.is_multipart() and part.get_content_maintype() == "multipart":
        for below in part.iter_parts():
            _sort(below, texts, others)
    elif kind in ("text/plain", "text/html") and not part.is_attachment() and not part.get_filename():
        texts.append(part)
    else:
        others.append(part)


def _is_stub(plain: MIMEPart, page: MIMEPart) -> bool:
    """Returns whether the plain text only asks for a reader that shows HTML, in place of what the HTML says."""
    both = Composer(), Composer()
    _body(both[0], plain)
    _body(both[1], page)
    words, page_words = (set(composer.text.split()) for composer in both)
    return len(both[0]) < SAME * len(both[1]) or len(words & page_words) < SAME * min(len(words), len(page_words))


def _body(composer: Composer, part: MIMEPart) -> None:
    raw = part.get_payload(decode=True)
    charset = part.get_content_charset() or "utf-8"
    charset = "cp1252" if charset == "iso-8859-1" else charset  # as browsers take it
    raw = raw if isinstance(raw, bytes) else b""
    try:
        text = raw.decode(charset)
    except (LookupError, UnicodeDecodeError):
        text, fault = mended(raw)
        composer.lost += filter(None, [fault])
    text = text.replace("\r\n", "\n")
    is_page = part.get_content_subtype() == "html"
    newest, quoted = replies.of_page(text) if is_page else ("", "")
    # Outlook marks what it quotes by words alone
    parts = [] if quoted else replies.of_text(html.plain(text)[1] if is_page else text)
    if is_page and len(parts) < 2:
        html.compose(newest, composer)
        if quoted:
            _quote(composer)
            html.compose(quoted, composer)
    else:
        for one in parts:
            if one.heading:
                _quote(composer, one.heading)
            for paragraph in one.text.split("\n\n"):
                composer.lines(paragraph)
    composer.top()
    composer.at(part=None)


def _quote(composer: Composer, heading: str = "") -> None:
    """Begins what the mail takes from one before, under who wrote that and when."""
    composer.top()
    composer.at(part=QUOTED)
    composer.heading(heading, 1)


def _unnamed(part: MIMEPart, number: int) -> str:
    kind = part.get_content_type()
    suffix = mimetypes.guess_extension(kind) if kind != "message/rfc822" else ""
    return f"attachment-{number}{suffix or ''}"


def _attachment(source: SourceFile, part: MIMEPart, name: str, place: str, id_: str) -> Iterator[Item]:
    losses: list[str] = []
    content = None
    with apart(losses, f"attachment {printable(name)}"):
        content = part.get_content() if part.get_content_type() == "message/rfc822" else part.get_payload(decode=True)
    yield from (Lost(place, loss) for loss in losses)
    if isinstance(content, EmailMessage):
        name, content = f"{name}.eml", content.as_bytes()
    if isinstance(content, bytes) and content:
        below = id_.removeprefix(source.name).lstrip("/")
        yield from source.inside(f"{below}/{name}" if below else name, content)
