"""Archives within bounds: what unpacks to far more than it is, or holds too much, is refused and takes no memory."""

import io
import tarfile
import zipfile

import pytest

from shardqa.errors import BadDocument, DocumentTooLarge
from shardqa.files import formats
from shardqa.files.formats import zipped
from shardqa.files.source_file import Item, Skipped, SourceFile
from shardqa.schema import Document

ZEROS = b"\0" * 1_000_000


def read(content: bytes, name: str) -> list[Item]:
    source = SourceFile.of_bytes(content, name, name, f"test:{name}", formats.read)
    try:
        return list(formats.read(source))
    finally:
        source.close()


def reasons(content: bytes, name: str) -> str:
    """Why nothing was taken, or all that was left out."""
    try:
        items = read(content, name)
    except (BadDocument, DocumentTooLarge) as fault:
        return str(fault)
    assert not any(isinstance(item, Document) for item in items)
    return "; ".join(item.reason for item in items if isinstance(item, Skipped))


def zip_of(*files: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def tar_of(*files: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_a_zip_bomb_is_refused_by_what_it_declares() -> None:
    bomb = zip_of(("zeros.txt", ZEROS * 50))
    assert len(bomb) < 100_000
    assert "that is no text" in reasons(bomb, "bomb.zip")


def test_a_tar_bomb_is_refused() -> None:
    bomb = tar_of(("zeros.txt", ZEROS * 50))
    assert len(bomb) < 100_000
    assert "it unpacks to more than" in reasons(bomb, "bomb.tar.gz")


def test_many_small_entries_of_a_tar_count_together() -> None:
    bomb = tar_of(*((f"{n}.txt", ZEROS) for n in range(40)))
    assert "it unpacks to more than" in reasons(bomb, "bomb.tgz")


def test_the_number_of_files_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipped, "MAX_ENTRIES", 3)
    files = [(f"{n}.txt", b"The mill.") for n in range(4)]
    assert "4 files in it, at most 3" in reasons(zip_of(*files), "many.zip")
    *taken, last = read(tar_of(*files), "many.tar.gz")
    assert len(taken) == 3
    assert isinstance(last, Skipped)
    assert "more than 3 files" in last.reason


def test_archives_within_archives_end_at_a_depth() -> None:
    content = zip_of(("mill.txt", b"The mill."))
    for level in range(12):
        content = zip_of((f"level{level}.zip", content))
    assert reasons(content, "deep.zip")


def test_links_and_what_leads_out_of_a_tar_are_no_files() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        link = tarfile.TarInfo("passwd.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        inside = tarfile.TarInfo("../../../mill.txt")
        inside.size = 9
        archive.addfile(inside, io.BytesIO(b"The mill."))
    skipped, document = read(file.getvalue(), "links.tar")
    assert isinstance(skipped, Skipped)
    assert "link" in skipped.reason
    assert isinstance(document, Document)
    assert document.id == "links.tar/mill.txt"
