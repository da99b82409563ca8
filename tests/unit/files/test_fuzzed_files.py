"""Damaged files of every format, made by hypothesis from whole ones: a reader tells what is wrong, and nothing else.

`FUZZ_SECONDS=600 pytest tests/unit/files/test_fuzzed_files.py` goes on for ten minutes with other damage each time
(`make torture-files MINUTES=10`). What was found lies in `found/`, by the name of its format, and is read each time.
"""

import io
import os
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from shardqa.files.formats import FORMATS
from tests import golden_files
from tests.unit.files.reading import Reader

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
RUNS = 3  # without it: the same damage each time, however fast the machine is
SMALL = 60_000  # bytes of a file that is damaged: larger ones take long and find no more
FOUND = Path(__file__).parent / "found"

Edit = tuple[int, int, int, bytes]  # which part, where (in thousandths), bytes taken out there, bytes put in


@pytest.fixture(scope="module")
def samples() -> list[tuple[str, bytes]]:
    """The golden files."""
    small = [path for path in golden_files.files() if path.stat().st_size <= SMALL]
    known = {suffix for format in FORMATS for suffix in format.suffixes}
    assert len({path.suffix for path in small} & known) >= 20
    return [(path.name, path.read_bytes()) for path in small]


def damaged(content: bytes, edits: list[Edit]) -> bytes:
    """Edits of the bytes; in a zip file, of what its parts hold."""
    if not zipfile.is_zipfile(io.BytesIO(content)) or not edits[0][0]:
        for _, place, out, new in edits:
            at = place * len(content) // 1000
            content = content[:at] + new + content[at + out :]
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    names = list(parts)
    for which, place, out, new in edits:
        name = names[which % len(names)]
        at = place * len(parts[name]) // 1000
        parts[name] = parts[name][:at] + new + parts[name][at + out :]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


WORDS = b'< > <!-- ]]> & &#x110000; " -1 { [ -- = <w:p> 1e999 \\ud800 \x00 \xff\xfe'
CELLS = b"<table:table-cell table:number-columns-repeated='9'>"
TOKENS = [*WORDS.split(b" "), CELLS, b"\n\n", b"9" * 30, b"\x80" * 9]
REPEATED = st.tuples(st.sampled_from(TOKENS), st.integers(2, 400)).map(lambda chosen: chosen[0] * chosen[1])
PIECES = st.one_of(st.sampled_from(TOKENS), st.binary(max_size=12), REPEATED)
TAKEN = st.sampled_from([0, 0, 1, 2, 7, 60, 5_000])
EDITS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1_000), TAKEN, PIECES), min_size=1, max_size=8)


def test_a_damaged_file_is_read_or_refused(samples: list[tuple[str, bytes]], reader: Reader) -> None:
    """Hypothesis makes small what fails, and shows it in the message."""
    if not SECONDS:
        for run in range(1, RUNS + 1):
            _some(samples, reader, run, float("inf"))
        return
    until, run = time.monotonic() + SECONDS, int(time.time())
    while time.monotonic() < until:
        _some(samples, reader, run, until)
        run += 1


def _some(samples: list[tuple[str, bytes]], reader: Reader, run: int, until: float) -> None:
    @seed(run)
    @settings(
        max_examples=60,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, len(samples) - 1), EDITS)
    def damage(which: int, edits: list[Edit]) -> None:
        if time.monotonic() > until:
            return
        name, content = samples[which]
        made = damaged(content, edits)
        read = reader.read(name, made)
        if read.failure:
            (Path(os.environ.get("FUZZ_FOUND", "/tmp")) / f"shardqa-found-{name}").write_bytes(made)
        assert not read.failure, f"{name}: {read.failure}"

    damage()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*")), ids=lambda path: path.name)
def test_what_was_found_once_is_read_or_refused(path: Path, reader: Reader) -> None:
    read = reader.read(path.name, path.read_bytes())
    assert not read.failure, read.failure
