"""SubRip and WebVTT: what is said, cue by cue, with the time at which it is."""

import re
from collections.abc import Iterator

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.source_file import Item, SourceFile

TIMES = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})")
TAGS = re.compile(r"<[^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")
VOICE = re.compile(r"<v(?:\.[\w.]+)?[ \t]+([^<>\n]{1,100})>")
NAMED = re.compile(r"((?:[A-ZÀ-Þ][\w.'’-]*[ \t]?){1,4}):[ \t]+(?=\S)")
SKIPPED = ("WEBVTT", "NOTE", "STYLE", "REGION")  # blocks of WebVTT that are not said
PAUSE = 3.0  # seconds of silence after which a new paragraph begins


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    said_until = float("-inf")
    shown: list[str] = []  # lines of the last cue: captions made by machines roll, and show each again
    speaker = ""
    for block in re.split(r"\n[ \t]*\n+", source.text()):
        lines = block.strip("\n").split("\n")
        at = next((n for n, line in enumerate(lines) if TIMES.search(line)), None)
        if at is None or lines[0].startswith(SKIPPED[1:]):
            continue
        match = TIMES.search(lines[at])
        assert match is not None, "just found"
        begin, end = _seconds(*match.groups()[:4]), _seconds(*match.groups()[4:])
        is_near = begin - said_until < PAUSE
        said = [line for line in lines[at + 1 :] if TAGS.sub("", line).strip()]
        for line in said:
            words = TAGS.sub("", line).strip()
            if words in shown:
                continue
            composer.at(time=_clock(begin))
            if (who := VOICE.search(line) or NAMED.match(words)) is None:
                composer.block(words, close=is_near)
            else:
                words = words if who.re is VOICE else words[who.end() :]
                is_same = who[1].strip() == speaker
                speaker = who[1].strip()
                composer.block(words if is_same else f"{speaker}: {words}", close=is_near and is_same)
            is_near = True
        shown = [TAGS.sub("", line).strip() for line in said] or shown
        said_until = max(said_until, end)
    if not len(composer):
        raise BadDocument("no cues in it, like '00:00:01,000 --> 00:00:04,000' and a line of text")
    yield from source.composed(composer)


def _seconds(hours: str | None, minutes: str, seconds: str, thousandths: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(thousandths.ljust(3, "0")) / 1000


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
