"""Light markup as it reads: comments are no text, definitions are put in, tables are rows."""

import pytest

from shardqa.files import formats
from shardqa.files.source_file import SourceFile
from shardqa.schema import Document

ADOC = """= Oven
:heat: 980

It burns at {heat} degrees, see <<fire>> and link:https://a.example[the page].

// It costs 7 euros.
|===
|Cone |Colour

|02
|pink
|===
Bat:: a disc
"""
ORG = """#+TITLE: Bees
* TODO Move hive 5 :spring:
# It costs 7 euros.
| Hive | Honey |
|------+-------|
| 5    | 11.5  |
"""
UNENDED = (  # each doubles the time of a reader that takes these for text
    "".join(rf"\newenvironment{{N{n}}}{{\begin{{P}} {{\sc Lemma}}}}{{\end{{P}}}}" for n in range(60))
    + r"\begin{document}"
    + "".join(rf"\newenvironment{{M{n}}}{{\begin{{P}}}}{{$a$ \end{{P}}}}" for n in range(60))
    + "The ferry sails at seven.\n\\end{document} It costs 7 euros."
)
TEX = r"""\newcommand{\oven}{Moss oven}
\title{The \oven}
\author{Ada Moss \and Ugo}
\begin{document}
\maketitle
% It costs 7 euros.
It burnt \textbf{41~days} at 12.5\,\%.
\begin{tabular}{lr}
Zone & Mean\\ \hline
Floor & 1311\\
\end{tabular}
\end{document}
"""
ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:7
DTSTART;TZID=Europe/Oslo:20240516T163000
BEGIN:VALARM
TRIGGER:-PT33M
END:VALARM
SUMMARY:Regatta of the
  club
LOCATION:Mill hall\\, Lisk
ORGANIZER;CN="Moss, Ada":mailto:ada@lisk.example
END:VEVENT
END:VCALENDAR
"""
RTF = rb"{\rtf1{\header Deed 7\par}The key {\strike 41}{\v 33} 57 euros.\par}"


def text(name: str, content: str | bytes) -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    found = next(iter(formats.read(SourceFile.of_bytes(raw, name, name))))
    assert isinstance(found, Document), found
    return found.text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.adoc", ADOC, "Oven\n\nIt burns at 980 degrees, see fire and the page.\n\nCone 02 has Colour: pink."),
        ("a.adoc", ADOC, "Bat: a disc"),
        ("a.org", ORG, "Bees\n\nMove hive 5\n\nHive 5 has Honey: 11.5."),
        ("a.tex", TEX, "The Moss oven\n\nAuthor: Ada Moss, Ugo\n\nIt burnt 41\xa0days at 12.5 %."),
        ("a.tex", UNENDED, "The ferry sails at seven."),
        ("a.tex", TEX, "Zone Floor has Mean: 1311."),
        (
            "a.ics",
            ICS,
            "Regatta of the club\n\nStart: 16 May 2024, 16:30.\nLocation: Mill hall, Lisk.\n"
            "Organizer: Moss, Ada (ada@lisk.example).",
        ),
        ("a.typ", "= Oven\nIt burns. // It costs 7 euros.\n/* nor */\n", "Oven\n\nIt burns."),
        ("a.wiki", "== Oven ==\nIt '''burns''' [[Fire|bright]].<!-- It costs 7 euros. -->", "Oven\n\nIt burns bright."),
        ("a.md", "It burns. %%It costs 7 euros.%%\n\n<!-- nor -->", "It burns."),
        ("a.rtf", RTF, "Deed 7\n\nThe key  57 euros."),
    ],
)
def test_it_reads_as_it_is_meant(name: str, content: str | bytes, words: str) -> None:
    found = text(name, content)
    assert words in found
    assert "7 euros" not in found.replace("57 euros", "")
    assert "33" not in found
