"""The file of a backup: whole or not there, and any damage is found."""

import gzip
import json
import os
import zlib
from pathlib import Path

import pytest

from shardqa.errors import BadBackup
from shardqa.loader.backup import file
from shardqa.loader.backup.file import BackupReader, Record, RecordKind, Writer

RECORDS = [
    Record(RecordKind.ABOUT, {"form": b"1", "data": b"{}"}),
    Record(
        RecordKind.DOCUMENT,
        {"corpus": b"mill", "id": b"a", "expires": b"", "fields": [[b"text", b"It was built in 1820. " * 20]]},
    ),
    Record(RecordKind.KEY, {"key": b"t\xff\x00", "expires": b"17", "dump": bytes(range(256))}),
    Record(RecordKind.DOCUMENT, {"corpus": b"mill", "id": b"b", "expires": b"", "fields": [[b"\xfe", b""]]}),
]


def written(path: Path) -> bytes:
    with Writer(path) as writer:
        for record in RECORDS:
            writer.add(record.kind, **record.fields)
        assert writer.close() == path.stat().st_size
    return path.read_bytes()


def read(path: Path) -> list[Record]:
    with BackupReader(path) as reader:
        return list(reader.records())


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path / "b")
    assert read(tmp_path / "b") == RECORDS


def test_it_is_lines_of_json_in_gzip(tmp_path: Path) -> None:
    lines = gzip.decompress(written(tmp_path / "b")).splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["about", "document", "key", "document", "end"]


def test_no_byte_that_is_changed_changes_what_is_read(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    refused = 0
    for at in range(len(whole)):
        (tmp_path / "c").write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            assert read(tmp_path / "c") == RECORDS
        except BadBackup:
            refused += 1
    assert refused > len(whole) - 10  # gzip's head has a time and a system that nobody looks at


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    for size in range(len(whole)):
        (tmp_path / "c").write_bytes(whole[:size])
        with pytest.raises(BadBackup):
            read(tmp_path / "c")


def test_bytes_behind_the_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(written(tmp_path / "b") + b"x")
    with pytest.raises(BadBackup, match="1 bytes or more follow its end"):
        read(tmp_path / "c")


@pytest.mark.parametrize(
    "order", [[0, 2, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3], [0, 1, 2, 3, 4, 4], [0, 1, 1, 2, 3, 4], [4]]
)
def test_records_that_are_lost_or_change_places_are_noticed(tmp_path: Path, order: list[int]) -> None:
    lines = gzip.decompress(written(tmp_path / "b")).splitlines(keepends=True)
    (tmp_path / "c").write_bytes(gzip.compress(b"".join(lines[number] for number in order)))
    with pytest.raises(BadBackup):
        read(tmp_path / "c")


def test_a_file_of_a_later_version_and_one_that_is_no_backup_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "later").write_bytes(gzip.compress(b'{"kind":"about","form":"2","data":"{}"}\n'))
    with pytest.raises(BadBackup, match="use the newer shardqa"):
        read(tmp_path / "later")
    for content in (b"PK\x03\x04", b"shardqa"):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(BadBackup, match="is no backup"):
            read(tmp_path / "other")


def test_a_record_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MAX_RECORD", 1 << 20)
    (tmp_path / "c").write_bytes(zlib.compress(bytes(100_000_000), 1, file.GZIP))
    with pytest.raises(BadBackup, match="takes more than 1,048,576 bytes"):
        read(tmp_path / "c")


def test_a_backup_that_breaks_off_leaves_the_older_one(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    with Writer(tmp_path / "b", replace=True) as writer:
        writer.add(RecordKind.ABOUT, form=b"1", data=b"{}")
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
            writer.add(RecordKind.ABOUT, form=b"1", data=b"{}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match="No such file"):
        Writer(tmp_path / "nowhere" / "b")
    with pytest.raises(BadBackup, match="No such file"):
        BackupReader(tmp_path / "nowhere")
