"""RTF by striprtf: paragraphs and the rows of tables."""

import re
from collections.abc import Iterator
from itertools import groupby

from striprtf.striprtf import rtf_to_text

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer
from shardqa.loader.formats.faults import readable
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile

PICTURE = re.compile(r"\{\\\*?\\?(?:shppict|nonshppict|pict|objdata|themedata|colorschememapping|datastore)\b[^{}]*\}")
RAISED = re.compile(r"\\(super|sub)(?![a-z0-9])[ \n]?((?:\\[a-z]+-?\d*[ \n]?)*)(?=[^\\{}\s])")


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY).decode("latin-1")
    if not content.lstrip().startswith("{\\rtf"):
        raise BadDocument("not RTF: it does not begin with {\\rtf")
    content = RAISED.sub(
        lambda found: f"\\{found[1]} {found[2]}{'^' if found[1] == 'super' else '_'}", PICTURE.sub("", content)
    )
    with readable("RTF"):
        text = str(rtf_to_text(content, encoding="cp1252", errors="replace"))
    composer = Composer()
    lines = (line.strip() for line in text.replace("\x00", "").split("\n"))
    for cells, group in groupby(
        (line for line in lines if line), lambda line: line.count("|") if line[-1] == "|" else 0
    ):
        rows = [line[:-1].split("|") for line in group] if cells > 1 else None
        if rows is None:
            for line in group:
                composer.block(line.rstrip("|"))
        else:
            composer.table(rows)
    yield source.composed(composer)
