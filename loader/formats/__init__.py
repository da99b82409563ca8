"""File formats: each module turns one open file into documents and into lines it had to skip.

A reader is a function `(Opened) -> Iterator[Item]`. It reads forward only and holds no more than one document of
formats that can be streamed (txt with pages, jsonl); the others are bounded by `MAX_WHOLE`.
"""

from collections.abc import Callable, Iterator

from shardqa.loader.formats import html, jsonl, markdown, squad, text
from shardqa.loader.opened import Item, Opened

READERS: dict[str, Callable[[Opened], Iterator[Item]]] = {
    ".txt": text.read,
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".html": html.read,
    ".htm": html.read,
    ".jsonl": jsonl.read,
    ".json": squad.read,
}
