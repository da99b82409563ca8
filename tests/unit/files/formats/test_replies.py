"""The newest words of a mail, and what it quotes, under who wrote that."""

import pytest

from shardqa.files.formats import replies


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


def test_a_mail_without_quotes_is_whole() -> None:
    text = "Name: Ada\n\nTo: 5 > 3, as we said:\n\nyes"
    assert parts(text) == [("", text)]
