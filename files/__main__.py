"""`python -m shardqa.files FILE …`: prints what is read of files and folders, with page, row and cells."""

import sys
from pathlib import Path

from shardqa.errors import BadDocument
from shardqa.files.folders import SourceFiles
from shardqa.files.source_file import Recognized
from shardqa.schema import Document

USAGE = "usage: python -m shardqa.files FILE_OR_FOLDER …"


def main(names: list[str]) -> int:
    """Returns 0; 2 for a path that is not there, 4 where something could not be read."""
    if not names:
        print(USAGE, file=sys.stderr)
        return 2
    code = 0
    try:
        for item in SourceFiles(map(Path, names)):
            if isinstance(item, Document):
                print_document(item)
            elif not isinstance(item, Recognized):
                print(f"{item.place}: {item.reason}", file=sys.stderr)
                code = 4
    except BadDocument as fault:
        print(fault, file=sys.stderr)
        return 2
    return code


def print_document(document: Document) -> None:
    print(f"== {document.id} ({document.title})")
    ends = [*(start for start, _ in document.places[1:]), len(document.text)]
    print(document.text[: document.places[0][0] if document.places else None], end="")
    for (start, place), end in zip(document.places, ends, strict=bool(document.places)):
        cells = " · ".join(f"{name}: {value}" for name, value in place.cells or ())
        where = ", ".join(part for part in (str(place), cells) if part)
        print(f"[{where}] " if where else "", document.text[start:end], sep="", end="")
    print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
