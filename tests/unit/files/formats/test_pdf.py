"""PDFs drawn for each test: words, columns, tables, scripts, and what is said of pages that are no text."""

import io
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Preformatted, SimpleDocTemplate, Table

from shardqa.files import formats
from shardqa.files.folders import SourceFiles
from shardqa.files.formats.pdf import legible, page
from shardqa.files.source_file import Item, Lost, Recognized, Skipped, SourceFile, Textless
from shardqa.schema import Document

STYLES = getSampleStyleSheet()
GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
RULES = [("LINEABOVE", (0, 0), (-1, 1), 0.5, colors.black), ("LINEBELOW", (0, -1), (-1, -1), 0.5, colors.black)]
HARBOR = (
    "The harbor of Brennick is the oldest of the island. Its pier was built in 1870 and lengthened twice since. "
    "Ferries leave each hour from six in the morning. "
)
FARES = [
    ["From", "To", "Adult fare", "Child fare"],
    ["Brennick", "Anster", "18 crowns", "9 crowns"],
    ["Brennick", "Corrin", "12 crowns", "6 crowns"],
    ["Anster", "Corrin", "6 crowns", "3 crowns"],
]
FARE = "From Brennick has To: Anster; Adult fare: 18 crowns; Child fare: 9 crowns."


def paragraph(text: str) -> Paragraph:
    return Paragraph(text, STYLES["BodyText"])


def built(*flow: Any) -> bytes:
    file = io.BytesIO()
    SimpleDocTemplate(file).build(list(flow))
    return file.getvalue()


def painted(paint: Callable[[Canvas], object], **options: Any) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4, **options)
    paint(canvas)
    canvas.save()
    return file.getvalue()


def drawn(*places: tuple[float, float, str], turned: bool = False, size: int = 12, **options: Any) -> bytes:
    def paint(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", size)
        canvas.rotate(90 if turned else 0)
        for x, y, words in places:
            canvas.drawString(x, y, words)

    return painted(paint, **options)


def items(content: bytes) -> list[Item]:
    return list(formats.read(SourceFile.of_bytes(content, "a.pdf", "a.pdf")))


def text(content: bytes) -> str:
    first = items(content)[0]
    assert isinstance(first, Document), first
    return first.text


@pytest.mark.parametrize("style", [[], GRID, RULES], ids=["without rules", "in a grid", "between rules"])
def test_rows_of_a_table_stay_rows(style: list[Any]) -> None:
    told = text(built(paragraph(HARBOR), Table(FARES, style=style), paragraph(HARBOR)))
    assert FARE in told.split("\n")
    assert told.count(HARBOR.strip()) == 2


@pytest.mark.parametrize("style", [[], GRID], ids=["without rules", "in a grid"])
def test_a_cell_of_several_lines_stays_in_its_row(style: list[Any]) -> None:
    rows = [["Ferry", "Notes", "Length"]]
    rows += [[paragraph(f"Berta{n}"), paragraph(f"Note {n}. {HARBOR}"), paragraph(f"{20 + n} m")] for n in range(4)]
    told = text(built(Table(rows, colWidths=[80, 200, 80], style=style)))
    assert f"Ferry Berta2 has Notes: Note 2. {HARBOR.strip()}; Length: 22 m." in told.split("\n")


@pytest.mark.parametrize("repeated", [0, 1], ids=["header once", "header on each page"])
def test_a_table_over_two_pages_has_its_header_on_both(repeated: int) -> None:
    rows = [["Ferry", "Captain", "Built"], *([f"Berta{n}", f"Holm{n}", str(1900 + n)] for n in range(60))]
    told = text(built(paragraph(HARBOR), Table(rows, repeatRows=repeated))).split("\n")
    assert [line for line in told if line.startswith("Ferry")] == [
        f"Ferry Berta{n} has Captain: Holm{n}; Built: {1900 + n}." for n in range(60)
    ]


def test_a_table_of_figures_has_no_header() -> None:
    rows = [[str(3 * row + 7 * column) for column in range(4)] for row in range(5)]
    assert "3 | 10 | 17 | 24" in text(built(Table(rows))).split("\n")


@pytest.mark.parametrize(
    ("foot", "every"), [("{}", 1), ("Handbook {} / 9", 1), ("Page {} of 9, edition 2", 1), ("{} Handbook", 2)]
)
def test_a_running_foot_is_text_once_where_it_says_something_whatever_pages_it_counts(foot: str, every: int) -> None:
    def paint(canvas: Canvas) -> None:
        for n in range(1, 10):
            canvas.drawString(60, 700, f"The mill {n * n} stands by the sea.")
            canvas.drawString(60, 40, "" if n % every else foot.format(n))
            canvas.showPage()

    mills = [f"The mill {n * n} stands by the sea." for n in range(1, 10)]
    first = [foot.format(every)] if foot != "{}" else []
    assert text(painted(paint)).split("\n\n") == mills[:every] + first + mills[every:]


def test_pages_of_a_file_that_is_cut_off_are_read_and_its_end_is_missed() -> None:
    whole = painted(lambda canvas: canvas.drawString(60, 700, "The mill stands by the sea."))
    document, lost = items(whole[: whole.index(b"xref\n")].replace(b"/Catalog", b"/Nothing"))
    assert isinstance(document, Document)
    assert document.text == "The mill stands by the sea."
    assert isinstance(lost, Lost)
    assert "its end is missing" in lost.reason


def test_columns_written_downwards_are_taken_from_the_right_and_named() -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3", isVertical=True))

    def paint(canvas: Canvas) -> None:
        canvas.setFont("HeiseiMin-W3", 12)
        for x, words in ((500, "水門は朝六時に開きます。"), (478, "鍵は番人が持っています。")):
            canvas.drawString(x, 700, words)

    document, lost = items(painted(paint))
    assert isinstance(document, Document)
    assert document.text == "水門は朝六時に開きます。 鍵は番人が持っています。"
    assert isinstance(lost, Lost)
    assert "downwards" in lost.reason


def test_code_is_no_table() -> None:
    code = "int main(void) {        /* the start */\n    int a;              /* counter */\n" * 3
    assert "|" not in text(built(paragraph(HARBOR), Preformatted(code, STYLES["Code"])))


def test_a_list_is_no_table() -> None:
    places = [(60, 700 - 20 * n, f"{n}.") for n in range(1, 6)]
    places = [place for one in places for place in (one, (90, one[1], f"The ferry number {one[2]} leaves at noon"))]
    assert "|" not in text(drawn(*places))


def test_a_table_stands_in_its_column() -> None:
    file = io.BytesIO()
    document = BaseDocTemplate(file, pagesize=A4)
    frames = [Frame(50, 50, 240, 740), Frame(305, 50, 240, 740)]
    document.addPageTemplates(PageTemplate(frames=frames))
    document.build([paragraph("First. " + HARBOR * 12), Table(FARES), paragraph("Second. " + HARBOR * 12)])
    told = text(file.getvalue())
    assert FARE in told.split("\n")
    assert told.count(HARBOR.strip()) == 24
    assert told.index("First.") < told.index(FARE) < told.index("Second.")


def test_two_columns_that_were_drawn_line_by_line_follow_each_other() -> None:
    left, right = textwrap.wrap("Left. " + HARBOR * 3, 45), textwrap.wrap("Right. " + HARBOR * 3, 45)
    places = [
        place
        for n, (one, other) in enumerate(zip(left, right, strict=True))
        for place in ((50, 780 - 14 * n, one), (310, 780 - 14 * n, other))
    ]
    told = text(drawn(*places))
    assert told.count(HARBOR.strip()) == 6
    assert told.index("Left.") < told.index("Right.")


def test_three_columns_drawn_across_the_page_are_read_one_after_the_other() -> None:
    """Their first lines stand at different heights, as below a heading; a foot stands below them all."""
    columns = [textwrap.wrap(f"{name}. {HARBOR * 4}", 34) for name in ("Left", "Middle", "Right")]
    places = [
        (42 + 180 * n, 780 - 11 * line - 3 * n, column[line])
        for line in range(max(map(len, columns)))
        for n, column in enumerate(columns)
        if line < len(column)
    ]
    told = text(drawn(*places, (300, 30, "-5-"), size=9))
    assert told.count(HARBOR.strip()) == 12
    assert told.index("Left.") < told.index("Middle.") < told.index("Right.") < told.index("-5-")


def test_a_table_of_wrapped_cells_without_rules_has_its_rows() -> None:
    rows = [
        ("Post", "Duty", "Person"),
        ("North gate", "opens the gate and\ncounts visitors", "Ines Falk"),
        ("Boat shed\nand ramp", "keeps the keys", "Otto Moss"),
        ("Kiosk", "sells tickets", "Ada Quist"),
    ]
    places = [
        (60 + 150 * n, 780 - 34 * row - 12 * line, words)
        for row, cells in enumerate(rows)
        for n, cell in enumerate(cells)
        for line, words in enumerate(cell.split("\n"))
    ]
    assert "Post Boat shed and ramp has Duty: keeps the keys; Person: Otto Moss." in text(drawn(*places))


def test_names_and_values_with_dots_between_them_are_pairs_but_in_contents() -> None:
    fees = [(60, 780 - 20 * n, f"{name} {'.' * 30} {value}") for n, (name, value) in enumerate(
        [("Adults", "72 euros"), ("Students", "36 euros"), ("Family", "110 euros")]
    )]  # fmt: skip
    assert text(drawn(*fees)) == "Adults: 72 euros.\nStudents: 36 euros.\nFamily: 110 euros."
    contents = [(60, 780 - 20 * n, f"Part {n} {'.' * 30} {7 * n}") for n in range(1, 4)]
    assert "......" in text(drawn(*contents))


def test_superscripts_and_subscripts_are_marked() -> None:
    words = "10<super>6</super> kg of H<sub>2</sub>O, x<sub>i</sub>, on the 21<super>st</super>."
    assert text(built(paragraph(words))) == "10^6 kg of H_2O, x_i, on the 21st."


def test_a_word_that_was_hyphenated_is_whole() -> None:
    told = text(drawn((60, 700, "This is about the naviga-"), (60, 686, "tion of ferries.")))
    assert told == "This is about the navigation of ferries."


def test_characters_beyond_16_bits_keep_the_places_of_others() -> None:
    """Counts them as pdfium does, twice."""
    units = "".join(map(chr, b"a")) + "\ud83d\udea2" + "b"
    assert page.clean(units) == "a🚢b"


def test_a_page_that_is_shown_turned_has_its_table() -> None:
    def paint(canvas: Canvas) -> None:
        canvas.setPageRotation(90)
        canvas.rotate(90)
        for row, cells in enumerate(FARES):
            for column, cell in enumerate(cells):
                canvas.drawString(60 + 120 * column, -100 - 18 * row, cell)

    assert FARE in text(painted(paint)).split("\n")


def test_words_that_run_downwards_are_whole() -> None:
    assert text(drawn((60, -100, "The mill stands at the river."), turned=True)) == "The mill stands at the river."


def test_a_blank_page_is_no_loss() -> None:
    def paint(canvas: Canvas) -> None:
        canvas.drawString(60, 700, "The mill stands.")
        canvas.showPage()
        canvas.showPage()

    assert len(items(painted(paint))) == 1


def test_an_encrypted_file_is_named_as_such() -> None:
    (item,) = items(drawn((60, 700, "The mill stands."), encrypt=StandardEncryption("secret", strength=128)))
    assert isinstance(item, Skipped)
    assert item.reason == "it is encrypted; save it without a password"


def test_a_file_that_anybody_may_open_is_read_though_encrypted() -> None:
    content = drawn((60, 700, "The mill stands."), encrypt=StandardEncryption("", "owner", strength=128))
    assert text(content) == "The mill stands."


def line(words: str) -> page.TextLine:
    return page.TextLine([page.Word(word, 0, 0, 0, 0) for word in words.split()])


@pytest.mark.parametrize(
    "words", ["\ue001\ue002\ue003 \ue004" * 10, "themillstandsattheriverandnobodyknowssincewhen" * 4]
)
def test_shapes_without_letters_and_glued_words_are_no_text(words: str) -> None:
    assert not legible.is_text([line(words)])


@pytest.mark.parametrize(
    "words", [HARBOR, "https://example.org/a/long/path/to/a/page.html", "風車は川のほとりに立っている。" * 9]
)
def test_prose_addresses_and_scripts_without_blanks_are_text(words: str) -> None:
    assert legible.is_text([line(words)])


def scan(words: str) -> Image.Image:
    picture = Image.new("L", (900, 200), 255)
    ImageDraw.Draw(picture).text((40, 60), words, font=ImageFont.load_default(36), fill=0)
    return picture


def recognized(content: bytes, name: str) -> list[Item]:
    source = SourceFile.of_bytes(content, name, name, inner=formats.read)
    source.ocr = True
    return [item for item in formats.read(source) if not isinstance(item, Recognized)]


def test_a_scanned_page_is_read_where_asked_for() -> None:
    picture = scan("The ferry carries 144 people.")
    content = painted(lambda canvas: canvas.drawInlineImage(picture, 0, 500, 595, 132))
    (skipped,) = items(content)
    assert isinstance(skipped, Skipped)
    assert "--ocr" in skipped.reason
    (item,) = recognized(content, "a.pdf")
    assert isinstance(item, Document)
    assert item.text == "The ferry carries 144 people."
    assert item.places[0][1].page == 1


def test_a_picture_is_read_where_asked_for() -> None:
    file = io.BytesIO()
    scan("The ferry carries 144 people.").save(file, "PNG")
    (item,) = recognized(file.getvalue(), "a.png")
    assert isinstance(item, Document)
    assert item.text == "The ferry carries 144 people."


def test_a_scanned_tables_rows_stay_rows_though_the_page_leans() -> None:
    rows = [("Line", "Adult", "Child"), ("Holm to Veyle", "7 crowns", "3 crowns"), ("Anster to Holm", "12", "6 crowns")]
    picture = Image.new("L", (1240, 400), 255)
    for down, row in enumerate(rows):
        for across, cell in zip((100, 500, 800), row, strict=True):
            ImageDraw.Draw(picture).text((across, 60 + 70 * down), cell, 0, ImageFont.load_default(36))
    picture = picture.rotate(0.5, fillcolor=255)
    file = io.BytesIO()
    picture.save(file, "PNG")
    (item,) = recognized(file.getvalue(), "a.png")
    assert isinstance(item, Document)
    assert item.text.splitlines() == [
        "Line Holm to Veyle has Adult: 7 crowns; Child: 3 crowns.",
        "Line Anster to Holm has Adult: 12; Child: 6 crowns.",
    ]


def test_a_page_upside_down_is_read() -> None:
    file = io.BytesIO()
    scan("The ferry carries 144 people.").rotate(180).save(file, "PNG")
    (item,) = recognized(file.getvalue(), "a.png")
    assert isinstance(item, Document)
    assert item.text == "The ferry carries 144 people."


def test_what_is_no_picture_is_named_as_such() -> None:
    (item,) = recognized(b"\x89PNG\r\n\x1a\n", "a.png")
    assert isinstance(item, Skipped)
    assert "not a picture that can be read" in item.reason


@pytest.mark.parametrize(("ocr", "kind"), [(False, Textless), (True, Document)])
def test_a_folders_pictures_are_read_where_asked_for(tmp_path: Path, ocr: bool, kind: type[Item]) -> None:
    scan("The ferry carries 144 people.").save(tmp_path / "a.png")
    assert [type(item) for item in SourceFiles([tmp_path], ocr=ocr)] == [kind]
