"""RTF by striprtf: paragraphs and the rows of tables."""

import re
from collections.abc import Iterator
from itertools import groupby

from striprtf.striprtf import rtf_to_text

from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer
from shardqa.loader.source_file import MAX_BINARY, Item, SourceFile

PICTURE = re.compile(r"\{\\\*?\\?(?:shppict|nonshppict|pict|objdata|themedata|colorschememapping|datastore)\b[^{}]*\}")
RAISED = re.compile(r"\\(super|sub)(?![a-z0-9])[ \n]?((?:\\[a-z]+-?\d*[ \n]?)*)(?=[^\\{}\s])")
FAULTS = (ValueError, LookupError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY).decode("latin-1")
    if not content.lstrip().startswith("{\\rtf"):
        raise BadDocument("not RTF: it does not begin with {\\rtf")
    content = RAISED.sub(
        lambda found: f"\\{found[1]} {found[2]}{'^' if found[1] == 'super' else '_'}", PICTURE.sub("", content)
    )
    try:
        text = str(rtf_to_text(content, encoding="cp1252", errors="replace"))
    except FAULTS as error:
        raise BadDocument(f"not RTF that can be read: {type(error).__name__} {str(error)[:120]}") from error
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
            has_header = len(rows) > 1 and all(cell.strip() for cell in rows[0])
            composer.rows(rows[1:] if has_header else rows, rows[0] if has_header else None)
    yield source.composed(composer)
