"""The file of a backup: whole or not there, and any damage is found."""

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadBackup
from shardqa.loader.backup.file import DIGEST, HEAD, MAGIC, BackupReader, Record, RecordKind, Writer, pack, unpack

RECORDS = [
    (RecordKind.ABOUT, [b"{}"]),
    (RecordKind.DOCUMENT, [b"mill", b"a.md", b"", b"text", b"The mill was built in 1820. " * 20]),
    (RecordKind.KEY, [b"t\xff\x00", b"17", bytes(range(256))]),
    (RecordKind.DOCUMENT, [b"mill", b"b.md", b"", b"text", b""]),
]


def written(path: Path) -> bytes:
    with Writer(path) as writer:
        for kind, items in RECORDS:
            writer.add(kind, items)
        assert writer.close() == path.stat().st_size
    return path.read_bytes()


def read(path: Path) -> list[Record]:
    with BackupReader(path) as reader:
        return list(reader.records())


@given(st.lists(st.binary(max_size=40)))
def test_a_list_comes_back(items: list[bytes]) -> None:
    assert unpack(pack(items)) == items


@given(st.binary(max_size=60))
def test_what_is_no_list_is_refused(content: bytes) -> None:
    try:
        items = unpack(content)
    except ValueError:
        return
    assert pack(items) == content


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path / "b")
    assert [(record.kind, record.items) for record in read(tmp_path / "b")] == RECORDS


def test_every_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    for at in range(len(whole)):
        (tmp_path / "c").write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(BadBackup):
            read(tmp_path / "c")


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    for size in range(len(whole)):
        (tmp_path / "c").write_bytes(whole[:size])
        with pytest.raises(BadBackup):
            read(tmp_path / "c")


def test_bytes_behind_the_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(written(tmp_path / "b") + b"x")
    with pytest.raises(BadBackup, match="1 bytes follow its end"):
        read(tmp_path / "c")


def parts(whole: bytes) -> list[bytes]:
    """The records of a file as they are stored."""
    found, at = [], len(MAGIC)
    while at < len(whole):
        _, _, stored = HEAD.unpack_from(whole, at)
        end = at + HEAD.size + DIGEST + stored
        found.append(whole[at:end])
        at = end
    return found


def test_records_that_change_places_are_noticed(tmp_path: Path) -> None:
    first, second, third, *rest = parts(written(tmp_path / "b"))
    (tmp_path / "c").write_bytes(b"".join([MAGIC, first, third, second, *rest]))
    with pytest.raises(BadBackup, match="record 1 is damaged"):
        read(tmp_path / "c")


def test_a_record_that_is_missing_at_the_end_is_noticed(tmp_path: Path) -> None:
    *records, last, end = parts(written(tmp_path / "b"))
    (tmp_path / "c").write_bytes(b"".join([MAGIC, *records, end]))
    with pytest.raises(BadBackup, match="damaged"):
        read(tmp_path / "c")
    assert last


def test_a_file_of_a_later_version_and_one_that_is_no_backup_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "later").write_bytes(b"shardqa backup 2\n")
    with pytest.raises(BadBackup, match="use the newer one"):
        read(tmp_path / "later")
    (tmp_path / "other").write_bytes(b"PK\x03\x04")
    with pytest.raises(BadBackup, match="is no backup"):
        read(tmp_path / "other")


def test_a_record_that_claims_to_be_huge_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(MAGIC + HEAD.pack(RecordKind.KEY, 1 << 62, 1 << 61) + bytes(DIGEST))
    with pytest.raises(BadBackup, match="record 0 is damaged or cut off"):
        read(tmp_path / "c")


def test_content_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    """Checksums guard against damage, not against people who make a file on purpose."""
    from shardqa.loader.backup import file

    stored = zlib.compress(bytes(100_000_000))
    head = HEAD.pack(RecordKind.KEY, len(stored) + 1, len(stored))
    (tmp_path / "c").write_bytes(MAGIC + head + file._digest(0, head, stored) + stored)
    with pytest.raises(BadBackup, match="its length is another"):
        read(tmp_path / "c")


def test_a_backup_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with Writer(tmp_path / "b") as writer:
            writer.add(RecordKind.ABOUT, [b"{}"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    assert list(tmp_path.iterdir()) == []


def test_a_backup_that_breaks_off_leaves_the_older_one(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    with Writer(tmp_path / "b", replace=True) as writer:
        writer.add(RecordKind.ABOUT, [b"{}"])
    assert (tmp_path / "b").read_bytes() == whole
    assert os.listdir(tmp_path) == ["b"]


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    with pytest.raises(BadBackup, match="--force"):
        Writer(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == whole


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    written(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with Writer(tmp_path / "b") as writer:
        writer._file.close()
        writer._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the writer's to close
        with pytest.raises(BadBackup, match="No space left on device"):
            writer.add(RecordKind.ABOUT, [b"{}"])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match="No such file"):
        Writer(tmp_path / "nowhere" / "b")
    with pytest.raises(BadBackup, match="No such file"):
        BackupReader(tmp_path / "nowhere")
