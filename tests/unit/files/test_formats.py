"""Files as documents: every format, gzipped too, and every way a file can be unfit."""

import gzip
import json
import mmap
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.checks import MAX_DOCUMENT
from shardqa.errors import BadDocument
from shardqa.files import folders
from shardqa.files.formats import html, markdown
from shardqa.files.source_file import CHUNK, MAX_MARKUP, Item, Lost, Skipped, SourceFile, Textless
from shardqa.schema import Document
from tests.unit.files.reading import Reader


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(*paths: Path) -> list[Item]:
    return list(folders.SourceFiles(paths))


def documents(*paths: Path) -> list[Document]:
    items = read(*paths)
    skipped = [item for item in items if isinstance(item, Skipped)]
    assert not skipped
    return [item for item in items if isinstance(item, Document)]


def reason(path: Path) -> str:
    items = read(path)
    assert len(items) == 1
    assert isinstance(items[0], Skipped)
    return items[0].reason


def test_of_lines_with_one_fault_three_are_told_and_how_many_more(tmp_path: Path) -> None:
    path = write(tmp_path / "asked.jsonl", '{"question": "Who?"}\n' * 250 + '{"text": "The mill stands."}\n')
    *told, _, rest = read(path)
    fault = 'no field "text" with a string'
    assert told == [Skipped(f"{path} line {n}", fault) for n in (1, 2, 3)]
    assert rest == Skipped(str(path), f"247 more lines: {fault}")


def test_a_text_file_is_one_document_named_by_its_path_below_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "sub" / "mill.txt", "The mill stands.\n")
    assert [(d.id, d.text, d.title) for d in documents(tmp_path)] == [("sub/mill.txt", "The mill stands.\n", "mill")]


def test_a_text_file_that_begins_with_a_title_line_holds_a_document_per_title(tmp_path: Path) -> None:
    path = write(tmp_path / "pages.txt", "\n# Mill (a/b)\n\nIt stands.\nStill.\n\n# Weir\nIt roars.\n")
    found = [(d.id, d.title, d.text) for d in documents(path)]
    assert found == [
        ("pages.txt/Mill (a/b)", "Mill (a/b)", "It stands.\nStill."),
        ("pages.txt/Weir", "Weir", "It roars."),
    ]


def test_two_pages_of_one_title_get_different_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "pages.txt", "# Mill\none\n# Mill\ntwo\n")
    assert [d.id for d in documents(path)] == ["pages.txt/Mill", "pages.txt/Mill (2)"]


def test_a_hash_in_the_middle_of_a_plain_text_begins_no_document(tmp_path: Path) -> None:
    path = write(tmp_path / "note.txt", "Dear all\n# not a title\n")
    assert [d.text for d in documents(path)] == ["Dear all\n# not a title\n"]


def test_a_page_without_text_is_skipped_by_name(tmp_path: Path) -> None:
    items = read(write(tmp_path / "pages.txt", "# Empty\n\n# Full\nwords\n"))
    assert [type(item) for item in items] == [Skipped, Document]
    assert "Empty" in items[0].place if isinstance(items[0], Skipped) else False


def test_windows_line_ends_and_a_byte_order_mark_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path / "mill.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert documents(path)[0].text == "one\ntwo\n"


def test_markdown_is_stored_as_it_reads(tmp_path: Path) -> None:
    page = (
        "# The *Mill*\n\nIt has **four** wheels, see [the map](http://x.example/m).\nSecond line.\n\n"
        "## Parts\n\n- wheel\n- `axle`\n\n1. first\n2. second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx = 1\n```\n"
    )
    (found,) = documents(write(tmp_path / "mill.md", page))
    assert found.title == "The Mill"
    assert found.text == (
        "It has four wheels, see the map.\nSecond line.\n\nParts\n\n- wheel\n- axle\n\n1. first\n2. second\n\n"
        "a 1 has b: 2.\n\nx = 1"
    )


def test_front_matter_of_a_markdown_page_is_metadata_and_no_text() -> None:
    assert markdown.read.__module__ == "shardqa.files.formats.markdown"
    assert markdown.plain("plain words") == ("", "plain words")
    settings = '---\nlayout: x\ntitle: "A: b"\nauthors:\n  - Ida Holm\n  - Jon Birk\ndate: 2024-03-02\n---\n'
    found = {"title": "A: b", "authors": "Ida Holm, Jon Birk", "date": "2024-03-02"}
    assert markdown._front_matter(f"{settings}words") == (found, "words")


def test_html_keeps_the_main_text_and_drops_the_boilerplate(tmp_path: Path) -> None:
    page = (
        "<html><head><title> The  Mill </title><style>p{}</style></head><body><nav>Home</nav><main><h1>Mill</h1>"
        "<p>It <b>stands</b>\n here&nbsp;&amp; now.<script>evil()</script></p><ul><li>one</li><li>two</li></ul>"
        "<table><tr><td>a</td><td>b</td></tr></table></main><footer>© us</footer></body></html>"
    )
    (found,) = documents(write(tmp_path / "mill.html", page))
    assert found.title == "The Mill"
    assert found.text == "Mill\n\nIt stands here\xa0& now.\n\n- one\n- two\n\na: b."


def test_html_soup_still_gives_its_words() -> None:
    title, text = html.plain("<p>one<p>two</b></div> <td>three<li>fo<i>ur" + "<div>" * 3000 + "deep")
    assert (title, text.split()) == ("", ["one", "two", "three", "-", "four", "deep"])


def test_lines_of_json_carry_ids_titles_and_metadata(tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {"id": "m1", "title": "Mill", "text": "It stands.", "year": 1820, "source": "s", "metadata": {"a": 1}}
        ),
        "",
        json.dumps({"text": "No id."}),
    ]
    first, second = documents(write(tmp_path / "mills.jsonl", "\n".join(lines)))
    assert (first.id, first.title, first.source, first.metadata) == ("m1", "Mill", "s", {"a": 1, "year": 1820})
    assert (second.id, second.text) == ("mills.jsonl/3", "No id.")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "list found"),
        ('{"id": "x"}', 'no field "text"'),
        ('{"text": 5}', 'no field "text"'),
        ('{"text": "x", "n": 123456789012345678901}', "64-bit range; send that as a text"),
        ('{"id": {}, "text": "t"}', '"id" is dict'),
        ('{"id": "x", "text": " "}', "no text"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_skipped_with_its_number_and_the_rest_is_read(tmp_path: Path, line: str, why: str) -> None:
    path = write(tmp_path / "mills.jsonl", f'{line}\n{{"text": "good"}}\n')
    bad, good = read(path)
    assert isinstance(bad, Skipped)
    assert "line 1" in bad.place
    assert why in bad.reason
    assert isinstance(good, Document)


def test_a_squad_paragraph_is_a_document_named_as_questions_name_it(tmp_path: Path) -> None:
    squad = {"data": [{"title": "The_Mill", "paragraphs": [{"context": "It stands.", "qas": []}]}]}
    (found,) = documents(write(tmp_path / "dev.json", json.dumps(squad)))
    assert (found.id, found.title, found.text) == ("The_Mill/0", "The Mill", "It stands.")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("blank.md", b" \n\n", "no text"),
        ("tags.html", b"<p></p>", "no text"),
        ("photo.txt", b"GIF89a\x00\x01", "binary"),
        ("damaged.txt", "Mühle, Wölfe".encode() + b"\xff.", "invalid UTF-8 at byte 14"),
        ("cut.txt", "Mühle".encode()[:2], "invalid UTF-8"),
        ("thing.foo", b"\x00\x01", "(suffix '.foo'); convert it to PDF, HTML or plain text"),
        ("talk.key.gz", gzip.compress(b"\x00\x01", mtime=0), "(suffix '.key'); convert it to .pdf"),
        ("broken.txt.gz", b"not gzip", "not a whole gzip file"),
        ("torn.txt.gz", gzip.compress(b"words" * 99, mtime=0)[:-9], "not a whole gzip file"),
    ],
)
def test_an_unfit_file_is_skipped_with_the_reason(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    assert why in reason(write(tmp_path / name, content))


def test_a_text_past_the_bound_is_skipped_with_the_bound(tmp_path: Path) -> None:
    path = write(tmp_path / "huge.txt.gz", gzip.compress(b"word\n" * (MAX_DOCUMENT // 5 + 1), 1))
    assert "more than 5,000,000 characters" in reason(path)


def test_a_text_of_more_bytes_than_characters_is_skipped_with_both_sizes(tmp_path: Path) -> None:
    count = MAX_DOCUMENT // 7 + 1
    path = write(tmp_path / "huge.txt.gz", gzip.compress("ßßß\n".encode() * count, 1))
    assert reason(path) == f"{7 * count:,} bytes of text, more than {MAX_DOCUMENT:,}; split it"


def test_a_page_of_more_markup_than_text_is_read(tmp_path: Path) -> None:
    page = f'<i title="{"x" * 990}"></i>' * (MAX_DOCUMENT // 1_000) + "words"
    assert len(page) > MAX_DOCUMENT
    assert documents(write(tmp_path / "page.html", page))[0].text == "words"


def test_markup_past_its_own_bound_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "page.md.gz", gzip.compress(b"*" * (MAX_MARKUP + 1), 1))
    assert f"more than {MAX_MARKUP:,} bytes" in reason(path)


def test_a_line_past_the_bound_ends_the_file_with_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "huge.jsonl.gz", gzip.compress(b'{"text":"' + b"x" * (MAX_DOCUMENT + CHUNK), 1))
    assert "one line: more than" in reason(path)


def test_a_missing_path_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match=r"nowhere\.txt is neither"):
        read(tmp_path / "nowhere.txt")


def test_an_unreadable_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone.txt")
    write(tmp_path / "b.txt", "words")
    with pytest.raises(FileNotFoundError):
        (tmp_path / "a.txt").stat()
    broken, good = read(tmp_path)
    assert isinstance(broken, Skipped)
    assert isinstance(good, Document)


def test_a_folder_that_may_not_be_listed_is_told_and_nothing_counts_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.scandir` refuses it here, since nothing keeps root out of a folder."""
    write(tmp_path / "barn" / "b.txt", "words")
    write(tmp_path / "a.txt", "words and more")
    assert folders.SourceFiles([tmp_path]).has_gone("c.txt", f"{tmp_path}/c.txt")
    scan = os.scandir

    def refusing(path: str) -> Any:
        if path.endswith("barn"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    reading = folders.SourceFiles([tmp_path])
    found, barn = list(reading)
    assert isinstance(found, Document)
    assert isinstance(barn, Skipped)
    assert (barn.place, barn.reason[:31]) == (f"{tmp_path}/barn", "can't be read: Permission denie")
    assert not reading.has_gone("c.txt", f"{tmp_path}/c.txt")


def test_hidden_files_and_folders_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / ".git" / "a.txt", "x")
    write(tmp_path / ".hidden.txt", "x")
    assert read(tmp_path) == []


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"{i}.txt", "words\n" * 1000)
    reading = folders.SourceFiles([tmp_path])
    assert reading.done() == 0
    assert len(list(reading)) == 3
    assert reading.done() == reading.total == 18_000


@given(st.text(alphabet=st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"])))
def test_lines_lose_no_character_wherever_chunks_end(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    padding = "é" * (CHUNK // 2 - 1) + "\n"
    path = write(tmp_path_factory.mktemp("lines") / "a.txt", "x" + padding + text)
    opened = SourceFile.open(path, "a")
    assert "\n".join(opened.lines()) == ("x" + padding + text).removesuffix("\n")
    opened.close()


def test_a_file_whose_name_is_not_utf_8_is_a_document_like_any_other(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("The mill stands.")
    (tmp_path / os.fsdecode(b"caf\xe9.bin")).write_text("")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text(" ")
    for item in read(tmp_path):
        assert isinstance(item, Document | Skipped | Textless)
        for told in [item.id, item.source, item.title] if isinstance(item, Document) else [item.place, item.reason]:
            told.encode()
    assert [item.id for item in read(tmp_path) if isinstance(item, Document)] == ["caf\ufffd.txt"]


def test_a_line_of_json_with_half_a_character_is_skipped_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a \\ud800 b"}\n{"text": "The mill stands."}\n')
    skipped, found = read(path)
    assert isinstance(skipped, Skipped)
    assert "lone surrogate at character 2" in skipped.reason
    assert isinstance(found, Document)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Młyn stoi tu od dawna.", "cp1250"),
        ("Młyn zbudował Józef Świątek w roku 1871 nad rzeką.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
        ("It’s 50 m³, said Zoë’s café.", "cp1252"),
        ("Le gâteau coûte 4 €.", "iso8859_15"),
        ("Die schöne Frau, l'été très chaud, la señora con ñoquis, kvinnan åt.", "cp1252"),
        ("It stands at 25 °C ± 2, 4 µm × 3 ½ away.", "cp1252"),
        ("Die Fähre fährt früh, später übernächsten Täler zurück", "cp1252"),
        ("Le moulin a été bâti en 1871 près de la rivière.", "cp1252"),
        ("Мельница была построена в 1871 году над рекой.", "cp1251"),
    ],
)
@pytest.mark.parametrize("name", ["note.txt", "note.md", "note.html", "note.eml"])
def test_an_old_encoding_is_told_from_the_others_and_said(tmp_path: Path, name: str, text: str, encoding: str) -> None:
    head = b"Subject: A note\n\n" if name.endswith("eml") else b""
    found, lost = read(write(tmp_path / name, head + text.encode(encoding)))
    assert isinstance(found, Document)
    assert found.text.strip().endswith(text)
    assert isinstance(lost, Lost)
    assert lost.reason == f"its encoding is named nowhere, and was taken for {encoding}"


PAGE = ".TH A 1\n.SH NAME\nThe mill stands.\n"


def test_a_request_of_a_manual_page_names_no_file_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "near.txt", "The secret weir.")
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "a.1", f"{PAGE}.so near.txt\n.so {tmp_path}/near.txt\n.so ../near.txt\n")
    (page,) = documents(path)
    assert "The mill stands." in page.text
    assert "secret" not in page.text


def test_a_manual_page_says_what_program_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "need the program mandoc" in reason(write(tmp_path / "a.1", PAGE))


def test_words_that_an_unknown_macro_takes_are_named_as_lost(tmp_path: Path) -> None:
    _, lost = read(write(tmp_path / "a.1", f"{PAGE}.XX The weir roars.\n.YY blue 2\n"))
    assert isinstance(lost, Lost)
    assert lost.reason.startswith("line 4: mandoc passed over 1 ")


def test_a_page_with_a_byte_that_is_none_is_read_and_says_so(tmp_path: Path) -> None:
    page, loss = read(
        write(tmp_path / "a.html", "<p>Fähre über den Fluß</p>".encode() + b"f\xe4hrt <p>The mill stands.")
    )
    assert isinstance(page, Document)
    assert page.text.endswith("The mill stands.")
    assert isinstance(loss, Lost)


def test_half_characters_of_json_are_question_marks_in_names(tmp_path: Path) -> None:
    (item,) = documents(
        write(tmp_path / "a.jsonl", r'{"text": "Mill", "id": "\ud800", "title": "\udc00", "source": "\ud800"}')
    )
    assert (item.id, item.title, item.source) == ("?", "?", "?")


def test_a_file_that_ends_its_reader_is_skipped_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SourceFile, "peek", lambda source, size: os._exit(1) if source.name == "a.txt" else b"x")
    write(tmp_path / "a.txt", "The mill stands.")
    write(tmp_path / "b.txt", "The mill stands.")
    broken, good = read(tmp_path)
    assert isinstance(broken, Skipped)
    assert "its reader ended" in broken.reason
    assert isinstance(good, Document)


def test_a_reader_has_its_memory_beside_what_its_process_comes_with() -> None:
    reader = Reader(1024**3)
    with mmap.mmap(-1, 4 * 1024**3):  # as torch reserves
        assert reader.read("a.html", b"<p>The mill stands." * 100_000).documents == 1
    reader.stop()


def test_lines_of_json_have_their_text_where_it_is_said_to_stand(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": "mill", "body": "Ada Holm built it.", "year": 1871}\n{"text": "A weir."}\n'
    )
    found, missing = folders.SourceFiles([tmp_path], text_field="body")
    assert isinstance(found, Document)
    assert (found.id, found.text, found.metadata) == ("mill", "Ada Holm built it.", {"year": 1871})
    assert isinstance(missing, Skipped)
    assert missing.reason == 'no field "body" with a string'


def test_a_line_of_a_log_says_its_time_last(tmp_path: Path) -> None:
    lines = "2024-03-04T02:14:47Z ERROR backup: failed\n  at vault.py\nMar  5 07:00:00 weir gauge[7]: read\n"
    (found,) = documents(write(tmp_path / "a.log", lines))
    assert found.text == (
        "ERROR backup: failed at 2024-03-04T02:14:47Z.\n  at vault.py\nweir gauge[7]: read at Mar 5 07:00:00."
    )
    assert [place.line for _, place in found.places] == [1, 2, 3]
    (other,) = documents(write(tmp_path / "b.log", "Fish of the year\n"))
    assert other.text == "Fish of the year\n"
