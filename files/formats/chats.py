"""Messages of a chat, as Slack and Teams export them in JSON: who says what, a turn a paragraph, with the time."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from zipfile import ZipFile

from shardqa.files.composer import Composer, one_line
from shardqa.files.formats import html, zipped
from shardqa.files.source_file import Item, SourceFile, Textless

LISTS = frozenset({"users.json", "channels.json", "groups.json", "dms.json", "mpims.json", "integration_logs.json"})
"""Files of Slack's export that hold no messages."""
NAMES = ("real_name", "display_name", "name")
MENTION = re.compile(r"<([@#!])([^<>|]*)(?:\|([^<>]*))?>")
LINK = re.compile(r"<(https?:[^<>|]*|mailto:[^<>|]*)(?:\|([^<>]*))?>")
UNESCAPED = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def is_export(names: list[str]) -> bool:
    """Returns whether an archive is Slack's export."""
    return {"users.json", "channels.json"} <= {PurePosixPath(name).name for name in names}


def read_export(source: SourceFile, archive: ZipFile, names: list[str]) -> Iterator[Item]:
    """Yields a document for each day of each channel."""
    users = next(name for name in names if PurePosixPath(name).name == "users.json")
    people = {str(one.get("id")): _name(one) for one in json.loads(zipped.content(archive, users))}
    for n, name in enumerate(names):
        source.advance(n / len(names))
        path = PurePosixPath(name)
        if path.name in LISTS:
            yield Textless(f"{source.label}/{name}", "lists of people and channels")
        elif path.suffix != ".json" or not (found := messages(json.loads(zipped.content(archive, name)), people)):
            yield from source.inside(name, zipped.content(archive, name))
        else:
            yield from compose(source, found, f"{path.parent.name}, {path.stem}", f"{source.name}/{name}")


def compose(
    source: SourceFile, found: list[tuple[str, datetime | None, str]], title: str = "", id_: str | None = None
) -> Iterator[Item]:
    """Yields messages (who, when, words) as one document."""
    composer = Composer()
    if title:
        composer.heading(title, 1)
    last = ""
    for who, when, words in found:
        composer.at(time=when.strftime("%-H:%M:%S") if when else None)
        words = f"{words}{'.' * words[-1].isalnum()}"  # else a reader takes the turns of two for one sentence
        composer.block(words if who == last or not who else f"{who}: {words}", close=who == last)
        last = who
    days = [when.date().isoformat() for _, when, _ in found if when]
    yield from source.composed(composer, title, id_, {"date": days[0]} if days else {})


def messages(root: Any, people: Mapping[str, str]) -> list[tuple[str, datetime | None, str]]:
    """Returns the messages (who, when, words) in a value of JSON; none where it holds others."""
    entries = root.get("value", root.get("messages", root.get("MessageList"))) if isinstance(root, dict) else root
    try:
        found = [
            _message(one, people) for one in (entries if isinstance(entries, list) else []) if isinstance(one, dict)
        ]
    except (ValueError, OverflowError):  # a time that is none
        return []
    told = [one for one in found if one is not None]
    return [one for one in told if one[2]] if len(told) == len(found) else []


def _message(one: Mapping[str, Any], people: Mapping[str, str]) -> tuple[str, datetime | None, str] | None:
    if isinstance(one.get("text"), str) and "ts" in one:  # Slack
        who = people.get(str(one.get("user"))) or _name(one.get("user_profile") or {}) or one.get("username", "")
        return str(who), datetime.fromtimestamp(float(one["ts"]), UTC), _plain(one["text"], people)
    body = one.get("body") or {}
    words = body.get("content") if isinstance(body, dict) else one.get("content")
    stamp = one.get("createdDateTime") or one.get("originalarrivaltime")
    if not isinstance(stamp, str):
        return None
    author = ((one.get("from") or {}).get("user") or {}) if isinstance(one.get("from"), dict) else {}
    who = author.get("displayName") or one.get("displayName") or ""
    return str(who), datetime.fromisoformat(stamp), one_line(html.plain(str(words or one.get("content") or ""))[1])


def _name(one: Mapping[str, Any]) -> str:
    profile = one.get("profile") or {}
    return next((str(which[name]) for which in (one, profile) for name in NAMES if which.get(name)), "")


def _plain(text: str, people: Mapping[str, str]) -> str:
    text = MENTION.sub(lambda found: found[3] or people.get(found[2], found[2]), text)
    text = LINK.sub(lambda found: found[2] or found[1], text)
    for sign, character in UNESCAPED:
        text = text.replace(sign, character)
    return text.strip()
