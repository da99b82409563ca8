"""One JSON object a line: a text; where present `id`, `title`, `source`, `metadata`; other fields join the metadata."""

import json
from collections import Counter
from collections.abc import Iterator

from shardqa import metadata
from shardqa.errors import BadDocument
from shardqa.files.source_file import Item, Skipped, SourceFile, printable
from shardqa.places import Place
from shardqa.schema import Document

TOLD = 3  # faults of one kind that are told with their line
NAMES = ("id", "title", "text", "source", "metadata")


def read(source: SourceFile) -> Iterator[Item]:
    """Yields the documents; of faults of one kind the first few, then how many more there are."""
    faults = Counter[str]()
    for number, line in enumerate(source.lines(), 1):
        if not line.strip():
            continue
        item = _document(source, number, line)
        kind = item.reason if isinstance(item, Skipped) else ""
        faults[kind] += bool(kind)
        if faults[kind] <= TOLD:
            yield item
    for kind, count in faults.items():
        if count > TOLD:
            yield Skipped(source.label, f"{count - TOLD:,} more lines: {kind}")


def _document(source: SourceFile, number: int, line: str) -> Item:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Skipped(f"{source.label} line {number}", f"not JSON: {error}")
    return of_entry(source, number, entry, "line")


def of_entry(source: SourceFile, number: int, entry: object, unit: str) -> Item:
    """Returns the document of one JSON value; `unit` is what `number` counts (`line`, `entry`)."""
    place = f"{source.label} {unit} {number}"
    if not isinstance(entry, dict):
        return Skipped(place, f"{type(entry).__name__} found, wanted an object with a text")
    if not isinstance(entry.get(source.text_field), str):
        return Skipped(place, f'no field "{source.text_field}" with a string')
    id_, title, origin = (entry.get(name) for name in ("id", "title", "source"))
    if not isinstance(id_, str | int | None) or isinstance(id_, bool):
        return Skipped(place, f'"id" is {type(id_).__name__}, wanted a string')
    item = source.document(
        entry[source.text_field],
        title if isinstance(title, str) else "",
        f"{source.name}/{number}" if id_ is None or id_ == "" else str(id_),
        [(0, Place(line=number) if unit == "line" else Place(row=number))],
    )
    if not isinstance(item, Document):
        return Skipped(place, item.reason)
    own = entry.get("metadata")
    others = {name: value for name, value in entry.items() if name not in (*NAMES, source.text_field)}
    update = {"metadata": {**(own if isinstance(own, dict) else {}), **others}}
    try:
        metadata.pack(item.id, update["metadata"])
    except BadDocument as fault:
        return Skipped(place, str(fault))
    return item.model_copy(update={**update, "source": printable(origin) if isinstance(origin, str) else place})
