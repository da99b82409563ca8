"""The newest words of a mail, and what it quotes, under who wrote that."""

import pytest

from shardqa.files import formats
from shardqa.files.formats import replies
from shardqa.files.source_file import SourceFile
from shardqa.places import QUOTED
from shardqa.schema import Document


def parts(text: str) -> list[tuple[str, str]]:
    return [(part.heading, part.text) for part in replies.of_text(text)]


def test_quoted_lines_are_under_who_wrote_them_and_lines_between_belong_to_the_newest() -> None:
    text = (
        "It costs 57.\n\nAm 5. März schrieb Ugo Moss:\n> Is it 41?\n>\n> On 4 Mar, Ada wrote:\n>> It was 33.\n\nNo.\n"
    )
    assert parts(text) == [
        ("", "It costs 57.\n\nNo."),
        ("Am 5. März schrieb Ugo Moss", "Is it 41?"),
        ("On 4 Mar, Ada wrote", "It was 33."),
    ]


@pytest.mark.parametrize("border", ["________________________________", "-----Original Message-----", ""])
def test_a_mails_head_among_the_text_begins_an_older_mail(border: str) -> None:
    head = "From: Ugo Moss <ugo@example.org>\nSent: Monday, 4 March\nTo: Ada\nSubject: boat"
    told = parts(f"It costs 57.\n\n{border}\n{head}\n\nIs it 41?")
    assert told == [("", "It costs 57."), ("Ugo Moss <ugo@example.org>, Monday, 4 March", "Is it 41?")]


@pytest.mark.parametrize(
    "quoted",
    [
        '<div class="gmail_quote">Am 5. März schrieb Ugo:<blockquote>Is it 41?</blockquote></div>',
        "<div><p><b>From:</b> Ugo<br><b>Sent:</b> 5 March 2024<br><b>To:</b> Ada</p></div><p>Is it 41?</p>",
    ],
)
def test_what_a_mail_in_html_quotes_is_a_part_of_its_own(quoted: str) -> None:
    mail = f"From: a@example.org\nContent-Type: text/html; charset=utf-8\n\n<p>It costs 57.</p>{quoted}"
    (found,) = formats.read(SourceFile.of_bytes(mail.encode(), "a.eml", "a.eml"))
    assert isinstance(found, Document)
    marks = [(place.part, found.text[at:]) for at, place in found.places]
    assert "It costs 57." not in next(words for part, words in marks if part == QUOTED)
    assert next(words for part, words in marks if part == QUOTED).endswith("Is it 41?")


def test_a_mail_without_quotes_is_whole() -> None:
    text = "Name: Ada\n\nTo: 5 > 3, as we said:\n\nyes"
    assert parts(text) == [("", text)]
