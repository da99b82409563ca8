"""SubRip and WebVTT: what is said, cue by cue, with the time at which it is."""

import re
from collections.abc import Iterator

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.source_file import Item, SourceFile

TIMES = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d+):)?(\d{1,2}):(\d{2})[.,](\d{1,3})")
TAGS = re.compile(r"<[^<>\n]{0,200}>|\{\\[^{}\n]{0,200}\}")
SKIPPED = ("WEBVTT", "NOTE", "STYLE", "REGION")  # blocks of WebVTT that are not said
PAUSE = 3.0  # seconds of silence after which a new paragraph begins


def read(source: SourceFile) -> Iterator[Item]:
    composer = Composer()
    said_until = float("-inf")
    last = ""
    for block in re.split(r"\n[ \t]*\n+", source.text()):
        lines = block.strip("\n").split("\n")
        at = next((n for n, line in enumerate(lines) if TIMES.search(line)), None)
        if at is None or lines[0].startswith(SKIPPED[1:]):
            continue
        match = TIMES.search(lines[at])
        assert match is not None, "just found"
        begin, end = _seconds(*match.groups()[:4]), _seconds(*match.groups()[4:])
        words = "\n".join(TAGS.sub("", line).strip() for line in lines[at + 1 :]).strip()
        if words and words != last:  # captions made by machines roll: a cue says the last one again
            composer.at(time=_clock(begin))
            composer.block(words, close=begin - said_until < PAUSE)
            last = words
        said_until = max(said_until, end)
    if not len(composer):
        raise BadDocument("no cues in it, like '00:00:01,000 --> 00:00:04,000' and a line of text")
    yield from source.composed(composer)


def _seconds(hours: str | None, minutes: str, seconds: str, thousandths: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(thousandths.ljust(3, "0")) / 1000


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
