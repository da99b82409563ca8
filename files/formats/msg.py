"""Outlook's msg: a message with its attachments, from the streams that olefile finds in it ([MS-OXMSG])."""

import io
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime

import olefile

from shardqa.files.encodings import decoded
from shardqa.files.formats import mail
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import MAX_BINARY, Item, Lost, SourceFile

HEADERS = {"From": 0x0C1A, "To": 0x0E04, "Cc": 0x0E03, "Subject": 0x0037}
SENT, RECEIVED = 0x0039, 0x0E06
BODY, HTML, RTF = 0x1000, 0x1013, 0x1009
LONG_NAME, NAME, CONTENT = 0x3707, 0x3704, 0x3701
FIRST_DAY = datetime(1601, 1, 1, tzinfo=UTC)
PROPERTIES = "__properties_version1.0"
ATTACHMENT = "__attach_version1.0_"
MAX_NESTED = 5  # messages in messages


def read(source: SourceFile) -> Iterator[Item]:
    losses: list[str] = []
    with (
        readable("a message of Outlook", "; save it as .eml"),
        olefile.OleFileIO(io.BytesIO(source.read_all(MAX_BINARY))) as file,
    ):
        message = _message(file, [], losses)
    yield from mail.of_message(source, message, source.name, source.label)
    yield from (Lost(f"{source.label}, {name}", "it can't be read; save the message as .eml") for name in losses)


def _message(file: olefile.OleFileIO, folder: list[str], losses: list[str]) -> EmailMessage:
    message = EmailMessage()
    for name, number in HEADERS.items():
        if value := " ".join(_text(file, folder, number).split()):
            message[name] = value
    if (date := _date(file, folder)) is not None:
        message["Date"] = format_datetime(date)
    body, html = _text(file, folder, BODY), _text(file, folder, HTML)
    message.set_content(body)
    if html:
        message.add_alternative(html, subtype="html")
    if not body.strip() and not html.strip() and _bytes(file, folder, RTF, "0102"):
        losses.append("the body")
    streams = file.listdir(streams=False, storages=True)
    for entry in (entry for entry in streams if entry[:-1] == folder and entry[-1].startswith(ATTACHMENT)):
        name = (_text(file, entry, LONG_NAME) or _text(file, entry, NAME)).strip("\x00 ")
        content = _bytes(file, entry, CONTENT, "0102")
        inner = [*entry, f"__substg1.0_{CONTENT:04X}000D"]
        if content:
            message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name or None)
        elif file.exists([*inner, PROPERTIES]) and len(folder) < 2 * MAX_NESTED:
            message.add_attachment(_message(file, inner, losses))
        else:
            losses.append(f"attachment {name}")
    return message


def _text(file: olefile.OleFileIO, folder: list[str], number: int) -> str:
    if wide := _bytes(file, folder, number, "001F"):
        return wide.decode("utf-16-le", "replace").replace("\x00", "").replace("\r\n", "\n")
    narrow = _bytes(file, folder, number, "001E") or _bytes(file, folder, number, "0102")
    return decoded(narrow.replace(b"\x00", b""), "cp1252")


def _bytes(file: olefile.OleFileIO, folder: list[str], number: int, kind: str) -> bytes:
    name = [*folder, f"__substg1.0_{number:04X}{kind}"]
    return bytes(file.openstream(name).read()) if file.exists(name) else b""


def _date(file: olefile.OleFileIO, folder: list[str]) -> datetime | None:
    """Returns when the message was sent or came, from the stream of numbers, whose head has a length of its own."""
    name = [*folder, PROPERTIES]
    content = file.openstream(name).read() if file.exists(name) else b""
    dates = {
        struct.unpack_from("<H", content, at + 2)[0]: struct.unpack_from("<Q", content, at + 8)[0]
        for at in range(24 if folder else 32, len(content) - 15, 16)
        if struct.unpack_from("<H", content, at)[0] == 0x0040
    }
    ticks = dates.get(SENT) or dates.get(RECEIVED)
    return FIRST_DAY + timedelta(microseconds=ticks // 10) if ticks and ticks < 1 << 60 else None
