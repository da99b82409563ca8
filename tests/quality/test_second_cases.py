"""The second set of small files that were answered wrongly: ingested, and asked; None where nothing answers."""

from pathlib import Path

import pytest

from shardqa.engine import Engine
from shardqa.files.folders import SourceFiles
from shardqa.loader.ingest import ingest

ASKED: dict[str, list[tuple[str, str | None]]] = {
    "icon-link.html": [("What does the small kiln cost a day?", "34 crowns")],
    "two-sheets.ods": [
        ("Who is the captain of the Berta?", "Ada Holm"),
        ("What is the fee of berth North 3?", "84 euros"),
    ],
    "near-miss.txt": [
        ("When does the library in Aldby close?", None),
        ("What does error E18 mean?", None),
        ("What is the rent of flat 3C?", None),
        ("What does Mrs Hale teach?", None),
        ("Who is the captain of the Berta?", None),
        ("Who repaired the cellar?", None),
        ("What is the deadline of phase 3?", None),
    ],
    "three-columns.pdf": [
        ("What does a lost key of the meter box cost?", "27 euros"),
    ],
    "struck-lease.docx": [
        ("What is the rent?", "745 euros"),
        ("What does clause 1.2 say?", "five years"),
        ("What does clause 2.1 say?", "The rent"),
    ],
    "struck-alt-jsonld.html": [
        ("What is the fare for adults?", "14 crowns"),
        ("What is the fare for children?", "5 crowns"),
        ("Where is the harbour office?", "next to the fish market"),
        ("What does ISM stand for?", "International Safety Management"),
        ("Are dogs allowed?", "free on the car deck"),
    ],
    "voices.vtt": [("Who orders the new sails?", "Ines Duarte"), ("Who repairs the mast?", "Bo Lind")],
    "quoted-thread.eml": [("How much does a stall cost?", "35 euros")],
    "confluence-expand.html": [("Where is the emergency stop?", "behind the green door")],
    "wrapped-cells.pdf": [
        ("Who is the deputy of Otto Rask?", "Mara Quill"),
        ("Who keeps the keys?", "Otto Rask"),
        ("Who opens the gate?", "Ines Duarte"),
    ],
    "tabbed-hours.docx": [("When is the club house closed?", "Tuesday")],
    "tables-side-by-side.xlsx": [("What does the pie cost?", "7")],
    "quotation.xlsx": [
        ("Who is the customer?", "Heron Rowing Club"),
        ("What is the number of the quotation?", "Q-2024-118"),
    ],
    "invoice.pdf": [
        ("What is the total?", "166.98"),
        ("How much VAT is on the invoice?", "28.98"),
        ("What is the invoice number?", "CS-30418"),
    ],
    "dotted-sheet.txt": [
        ("When was the last service of winch 4?", "12 Feb 2024"),
        ("What is the maximum load?", "2,500 kg"),
        ("In which year was it made?", "1998"),
    ],
    "dotted-fees.pdf": [
        ("What is the membership fee for students?", "36"),
        ("What is the membership fee for a family?", "110"),
    ],
    "products.json": [("What does the cedar shelf cost?", "249.5")],
    "slack-export.zip": [
        ("Who signs for the lathe?", "Ines Duarte"),
        ("Who said what the lathe cost?", "Ines Duarte"),
    ],
    "manual.adoc": [
        ("To how many degrees is the kiln heated?", "1280"),
        ("What colour is cone 6?", "cream"),
        ("What is the internal price?", None),
    ],
    "paper.tex": [
        ("What was the secret budget?", None),
        ("What is the mean temperature of the crown?", "1498"),
        ("How large was the loss?", "12.5 %"),
    ],
    "header-hidden.rtf": [("What is the contract number?", "KX-5521"), ("What is the password?", None)],
    "annotation.odt": [("Which notary should be asked?", "Olga Brant")],
    "gauge.py": [
        ("What is the timeout?", "45"),
    ],
    "app.log": [("When did the backup fail?", "2024-03-04T02:14:47Z")],
    "bank-statement.csv": [
        ("Who paid the membership fee?", "Ines Duarte"),
        ("Who owns the account KX 4711?", "Heron Rowing Club"),
    ],
    "club.ics": [("Where is the annual meeting of the rowing club?", "Mill hall")],
    "notes.org": [("How much honey did hive 3 give?", "14.5")],
}


@pytest.mark.parametrize("name", ASKED)
async def test_a_file_answers_what_it_says_and_nothing_else(
    engine: Engine, shared: Path, corpus: str, name: str
) -> None:
    file = shared / "data/cases5" / name
    if not file.is_file():
        pytest.skip(f"{file} is absent")
    await ingest(engine, SourceFiles([file]), corpus)
    wrong = list[str]()
    for question, value in ASKED[name]:
        answer = await engine.ask(question, corpus=corpus)
        is_right = answer.answer is None if value is None else value in (answer.answer or "")
        if not is_right:
            wrong.append(f"{question} {value!r}: {answer.answer!r} {answer.score:.2f}")
    assert not wrong, "\n".join(wrong)
