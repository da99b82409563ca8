"""The file of a backup: whole or not there, and any damage is found."""

import gzip
import json
import os
from pathlib import Path

import pytest

from shardqa import keys
from shardqa.errors import BadBackup
from shardqa.loader.backup import file
from shardqa.loader.backup.dump import MADE_AGAIN
from shardqa.loader.backup.file import Record, RecordKind, records, writing

ABOUT = Record(RecordKind.ABOUT, {"form": b"3", "data": b"{}"})
RECORDS = [
    ABOUT,
    Record(
        RecordKind.DOCUMENT,
        {"corpus": b"mill", "id": b"a", "expires": b"", "fields": [[b"text", b"It was built in 1820. " * 20]]},
    ),
    Record(RecordKind.KEY, {"key": b"t\xff\x00", "expires": b"17", "dump": bytes(range(256))}),
    Record(RecordKind.DOCUMENT, {"corpus": b"mill", "id": b"b", "expires": b"", "fields": [[b"\xfe", b""]]}),
]


def written(path: Path) -> bytes:
    with writing(path) as writer:
        for record in RECORDS:
            writer.add(record.kind, **record.fields)
    return path.read_bytes()


def read(path: Path) -> list[Record]:
    return list(records(path))


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path / "b")
    assert read(tmp_path / "b") == RECORDS


def test_it_is_lines_of_json_in_gzip(tmp_path: Path) -> None:
    lines = gzip.decompress(written(tmp_path / "b")).splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["about", "document", "key", "document", "end"]


def test_a_file_of_the_last_form_is_read(tmp_path: Path) -> None:
    first, end = b'{"kind":"about","form":"1","data":"{}"}\n', b'{"kind":"end","records":{},"digest":"0"}\n'
    (tmp_path / "b").write_bytes(gzip.compress(first + end))
    assert read(tmp_path / "b") == [Record(RecordKind.ABOUT, {"form": b"1", "data": b"{}"})]


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


@pytest.mark.parametrize("lines", ["edited", "without its end", "with another behind"])
def test_a_file_whose_text_was_changed_is_refused(tmp_path: Path, lines: str) -> None:
    first, *rest, end = gzip.decompress(written(tmp_path / "b")).splitlines(keepends=True)
    edited = [first, *rest[:-1], rest[-1].replace(b"mill", b"hill"), end]
    changed = {
        "edited": edited,
        "without its end": [first, *rest],
        "with another behind": [first, *rest, end, rest[-1]],
    }
    (tmp_path / "c").write_bytes(gzip.compress(b"".join(changed[lines])))
    with pytest.raises(BadBackup, match="is not as it was written"):
        read(tmp_path / "c")


def test_a_file_of_the_second_form_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(gzip.compress(b'{"kind":"about","form":"2","data":"{}"}\n'))
    assert read(tmp_path / "b") == [Record(RecordKind.ABOUT, {"form": b"2", "data": b"{}"})]


def test_a_file_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    for size in range(len(whole)):
        (tmp_path / "c").write_bytes(whole[:size])
        with pytest.raises(BadBackup):
            read(tmp_path / "c")


def test_a_file_of_a_later_version_and_one_that_is_no_backup_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "later").write_bytes(gzip.compress(b'{"kind":"about","form":"4","data":"{}"}\n'))
    with pytest.raises(BadBackup, match="use the newer shardqa"):
        read(tmp_path / "later")
    (tmp_path / "other").write_bytes(b"PK\x03\x04")
    with pytest.raises(BadBackup, match="Not a gzipped file;"):
        read(tmp_path / "other")


def test_a_record_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MAX_RECORD", 1 << 20)
    (tmp_path / "c").write_bytes(gzip.compress(bytes(100_000_000), 1))
    with pytest.raises(BadBackup, match="takes more than 1,048,576 bytes"):
        read(tmp_path / "c")


def test_a_backup_that_breaks_off_leaves_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path / "b")
    monkeypatch.setattr(file, "MAX_RECORD", 10)
    with pytest.raises(BadBackup, match="at most 10 can be kept"), writing(tmp_path / "b", replace=True) as writer:
        writer.add(ABOUT.kind, **ABOUT.fields)
    assert (tmp_path / "b").read_bytes() == whole
    assert os.listdir(tmp_path) == ["b"]


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    whole = written(tmp_path / "b")
    with pytest.raises(BadBackup, match="--force"), writing(tmp_path / "b"):
        pass
    assert (tmp_path / "b").read_bytes() == whole


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    written(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_told_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with open("/dev/full", "wb", buffering=0) as full, writing(tmp_path / "b") as writer:
            writer._packed.fileobj = full
            writer.add(ABOUT.kind, **ABOUT.fields)

    with pytest.raises(BadBackup, match="No space left on device"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match="No such file"), writing(tmp_path / "nowhere" / "b"):
        pass
    with pytest.raises(BadBackup, match="No such file"):
        read(tmp_path / "nowhere")


def test_what_a_document_becomes_is_made_again(tmp_path: Path) -> None:
    passage = keys.passage("c", "a document", 3)
    assert all(MADE_AGAIN.match(key.encode()) for key in (passage, keys.tokens_of_passage(passage)))
    others = (keys.doc_of_passage(passage), "passage:california")
    assert not any(MADE_AGAIN.match(key.encode()) for key in others)
