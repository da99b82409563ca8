"""Documents of a paperless-ngx server, and what is told where it does not answer as one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shardqa.errors import BadDocument
from shardqa.files.known import KnownFiles
from shardqa.files.source_file import Skipped, Textless
from shardqa.files.web import paperless
from shardqa.files.web.pages import Bounds
from shardqa.files.web.paperless import ON_PAGE, Paperless
from shardqa.schema import Document
from tests.unit.files.web.paperless_server import DOCUMENTS, TOKEN, document, put_documents, served
from tests.unit.files.web.site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as found:
        yield found


def reading(site: Site, known: KnownFiles | None = None, pages: int = 100) -> Paperless:
    return Paperless(f"paperless+{site.url('/')}", TOKEN, memory=known, bounds=Bounds(allow_private=True, pages=pages))


def reasons(source: Paperless) -> list[str]:
    return [item.reason for item in source if isinstance(item, Skipped)]


def test_a_document_has_text_names_of_tags_dates_and_its_page(site: Site) -> None:
    found, other, photo = reading(site)
    assert isinstance(found, Document)
    assert (found.id, found.title) == (f"localhost:{site.port}/documents/7/details", "Clutch")
    assert found.source == found.origin == site.url("/documents/7/details")
    assert found.metadata == {
        "tags": ["car", "2026"],
        "correspondent": "Holm & Sons",
        "document_type": "Invoice",
        "created": "2026-05-04",
        "added": "2026-05-05T08:00:00Z",
        "original_file_name": "scan-7.pdf",
    }
    assert isinstance(other, Document)
    assert isinstance(photo, Textless)
    assert {headers["Authorization"] for _, headers in site.requests} == {f"Token {TOKEN}"}


def test_all_pages_are_read_and_what_is_listed_no_more_has_gone(site: Site) -> None:
    put_documents(site, [document(n, f"Note {n}", "It rains.") for n in range(1, ON_PAGE + 3)])
    source = reading(site)
    assert len(list(source)) == ON_PAGE + 2
    origins = [site.url(f"/documents/{n}/details") for n in (2, ON_PAGE + 2, 99)]
    assert [source.has_gone("", origin) for origin in (*origins, "http://elsewhere/documents/99/details")] == [
        False,
        False,
        True,
        False,
    ]
    source = reading(site, pages=4)
    assert "--max-pages" in reasons(source)[0]
    assert not source.has_gone("", origins[-1])


def test_what_has_not_changed_is_passed_over_until_a_tag_has_another_name(site: Site, tmp_path: Path) -> None:
    memory, source = KnownFiles(tmp_path / "known.json"), reading(site)
    listed = {item.id: item.origin for item in source if isinstance(item, Document)}
    memory.learn(source.read, set())
    memory.trust(listed)
    again = reading(site, memory)
    assert [item for item in again if isinstance(item, Document)] == []
    assert again.passed_over == 2
    site.put(f"/api/tags/?page=1&page_size={ON_PAGE}&ordering=id", '{"count": 2, "next": null, "results": '
             '[{"id": 1, "name": "boat"}, {"id": 2, "name": "2026"}]}')  # fmt: skip
    assert [item.title for item in reading(site, memory) if isinstance(item, Document)] == ["Clutch"]


def test_faults_are_told_with_their_way_out_and_remove_nothing(site: Site) -> None:
    target = f"/api/documents/?page=1&page_size={ON_PAGE}&ordering=id"
    site.redirect(target, f"http://localhost:{site.port + 1}/api/")
    assert "another host" in reasons(reading(site))[0]
    for status, body, reason in ((401, "{}", paperless.TOKEN), (200, "[]", "as paperless-ngx does"), (500, "", "500")):
        site.put(target, body, status=status)
        source = reading(site)
        assert reason in reasons(source)[0]
        assert not source.has_gone("", site.url("/documents/7/details"))
    put_documents(site, DOCUMENTS[:0])
    empty = reading(site)
    assert list(empty) == []
    assert not empty.has_gone("", site.url("/documents/7/details"))


def test_a_server_stands_alone_in_a_command_and_wants_a_token() -> None:
    with pytest.raises(BadDocument, match="alone"):
        paperless.source(["https://a.example", "paperless+https://b.example"], TOKEN, "", None)
    with pytest.raises(BadDocument, match="not set"):
        paperless.source(["paperless+https://b.example"], "", "", None)
    assert paperless.source(["https://a.example"], "", "", None) is None
