"""One JSON object a line: `text`; where present `id`, `title`, `source`, `metadata`; other fields join the metadata."""

import json
from collections.abc import Iterator

from shardqa.loader.opened import Item, Opened, Skipped

NAMES = ("id", "title", "text", "source", "metadata")


def read(opened: Opened) -> Iterator[Item]:
    for number, line in enumerate(opened.lines(), 1):
        if line.strip():
            yield _document(opened, number, line)


def _document(opened: Opened, number: int, line: str) -> Item:
    place = f"{opened.shown} line {number}"
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        return Skipped(place, f"not JSON: {error}")
    if not isinstance(entry, dict):
        return Skipped(place, f"{type(entry).__name__} found, wanted an object with a text")
    if not isinstance(entry.get("text"), str):
        return Skipped(place, 'no field "text" with a string')
    id_, title, source = (entry.get(name) for name in ("id", "title", "source"))
    if not isinstance(id_, str | int | None) or isinstance(id_, bool):
        return Skipped(place, f'"id" is {type(id_).__name__}, wanted a string')
    item = opened.document(
        entry["text"],
        title if isinstance(title, str) else "",
        f"{opened.name}/{number}" if id_ is None or id_ == "" else str(id_),
    )
    if isinstance(item, Skipped):
        return Skipped(place, item.reason)
    metadata = entry.get("metadata")
    others = {name: value for name, value in entry.items() if name not in NAMES}
    return item.model_copy(
        update={
            "source": source if isinstance(source, str) else place,
            "metadata": {**(metadata if isinstance(metadata, dict) else {}), **others},
        }
    )
