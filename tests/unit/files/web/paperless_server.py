"""A small server that speaks the lists of paperless-ngx' documented REST API, as version 2 answers them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shardqa.files.web.paperless import ON_PAGE
from tests.unit.files.web.site import Site, serving

TOKEN = "b2f4"
NAMED = {"tags": {1: "car", 2: "2026"}, "correspondents": {5: "Holm & Sons"}, "document_types": {3: "Invoice"}}


def document(id: int, title: str, content: str, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "correspondent": None,
        "document_type": None,
        "storage_path": None,
        "tags": [],
        "created": "2026-05-04",
    }
    fields |= {"modified": f"2026-06-0{id}T10:00:00Z", "added": "2026-05-05T08:00:00Z", "archive_serial_number": None}
    return {"id": id, "title": title, "content": content, **fields, "original_file_name": f"scan-{id}.pdf", **more}


DOCUMENTS = [
    document(7, "Clutch", "The new clutch is 412 crowns.", tags=[1, 2], correspondent=5, document_type=3),
    document(8, "Lease", "The lease ends on 30 June."),
    document(9, "Photo", " "),
]


def put_list(site: Site, kind: str, results: Sequence[dict[str, Any]]) -> None:
    """A list in pages, as Django's framework cuts it."""
    pages = [results[first : first + ON_PAGE] for first in range(0, len(results), ON_PAGE)] or [[]]
    for number, page in enumerate(pages, 1):
        target = f"/api/{kind}/?page={{}}&page_size={ON_PAGE}&ordering=id"
        following = f"http://behind-a-proxy{target.format(number + 1)}" if number < len(pages) else None
        body = {"count": len(results), "next": following, "previous": None, "all": [], "results": page}
        site.put(target.format(number), json.dumps(body), "application/json")


def put_documents(site: Site, documents: Sequence[dict[str, Any]]) -> None:
    put_list(site, "documents", documents)


@contextmanager
def served() -> Iterator[Site]:
    with serving() as site:
        for kind, names in NAMED.items():
            put_list(site, kind, [{"id": id, "name": name} for id, name in names.items()])
        put_documents(site, DOCUMENTS)
        yield site
