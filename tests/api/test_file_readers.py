"""Files are read in processes of their own: what takes too long, or breaks its reader, harms nobody."""

import asyncio
import os
import time

import pytest

from shardqa.api import bearer
from shardqa.api.file_readers import FileReaders
from shardqa.errors import BadDocument, FileTooSlow
from shardqa.files import reader_process
from shardqa.files.source_file import Textless
from shardqa.schema import Document

BOUND = 512 * 1024**2  # bytes; a reader with its libraries loaded takes some hundred MiB of addresses
SMALL = b"<p>The mill is old.</p>"
GREEDY = b"<p>a<b>b</b>" * 4_000_000  # its tree alone takes ten times as much


async def test_what_is_read_there_comes_back_as_it_is() -> None:
    readers = FileReaders()
    (page,) = await readers.read(b"<title>Mill</title><h1>Mill</h1><p>It is old.</p>", "mill.html", 10)
    assert isinstance(page, Document)
    assert (page.id, page.title, page.places[0][1].headings) == ("mill.html", "Mill", ["Mill"])
    (empty,) = await readers.read(b"", "empty.txt", 10)
    assert isinstance(empty, Textless)
    lines = b'{"id": "a", "text": "One."}\n{"id": "b", "text": "Two."}\n'
    assert len(await readers.read(lines, "two.jsonl", 1)) == 1


async def test_a_file_that_takes_too_long_is_given_up_and_its_process_ended() -> None:
    readers = FileReaders(processes=1, seconds=0.001)
    with pytest.raises(FileTooSlow, match=r"mill\.txt took more than"):
        await readers.read(b"The mill is old.", "mill.txt", 10)
    slow = FileReaders(processes=1)
    (_,) = await slow.read(b"The mill is old.", "mill.txt", 10)


async def test_a_file_that_wants_more_memory_than_it_gets_is_refused_and_the_next_is_read() -> None:
    readers = FileReaders(processes=1, memory=BOUND)
    with pytest.raises(
        BadDocument, match=r"greedy\.html (takes more memory to read than the|can't be read: its reader)"
    ):
        await readers.read(GREEDY, "greedy.html", 10)
    (found,) = await readers.read(SMALL, "small.html", 10)
    assert isinstance(found, Document)


async def test_whoever_leaves_frees_the_place_at_once() -> None:
    readers = FileReaders(processes=1)
    big = b"word " * 200_000
    first = asyncio.create_task(readers.read(big, "big.rst", 10))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    (found,) = await readers.read(b"The mill is old.", "mill.txt", 10)
    assert isinstance(found, Document)


async def test_files_of_one_client_that_take_long_hold_no_other_clients_up() -> None:
    readers = FileReaders(processes=1)
    bearer.client.set("one")
    long = [asyncio.create_task(readers.read(b"word " * 200_000, f"{n}.rst", 10)) for n in range(4)]
    await asyncio.sleep(0)
    bearer.client.set("another")
    (found,) = await readers.read(b"The mill is old.", "mill.txt", 10)
    assert isinstance(found, Document)
    assert not long[-1].done()
    for task in long:
        task.cancel()
    await asyncio.gather(*long, return_exceptions=True)


async def test_a_reader_that_ends_is_a_problem_of_that_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "_serve", os.abort)
    with pytest.raises(BadDocument, match="its reader ended"):
        await FileReaders().read(b"x", "x.txt", 10)


async def test_the_loop_goes_on_while_files_are_read() -> None:
    readers, ticks = FileReaders(processes=2), 0
    reading = asyncio.gather(*(readers.read(b"word. " * 300_000, f"{n}.txt", 10) for n in range(3)))
    started = time.monotonic()
    while not reading.done():
        await asyncio.sleep(0.005)
        ticks += 1
    assert ticks > (time.monotonic() - started) * 10, "the loop was held up"
    await reading
