"""The answer for a browser without JavaScript: a piece of HTML for the page's <noscript>.

Documents are hostile: every text goes in escaped, and as text alone.
"""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote, urlencode

from shardqa.answer_lines import verdict
from shardqa.errors import ShardqaError
from shardqa.places import Place
from shardqa.schema import Answer

ANSWER = "<!-- answer -->"  # where the page takes it
CORPORA = '<select id="corpus" name="corpus">'
QUESTION = 'name="q"'
HEAD = "</head>"


def sent_on(html: str, question: str, corpus: str) -> str:
    """Returns the page, which sends a browser without JavaScript on to the plain form."""
    query = urlencode({**({"q": question} if question else {}), **({"corpus": corpus} if corpus else {}), "plain": "1"})
    refresh = f'<noscript><meta http-equiv="refresh" content="0; url=/?{escape(query)}"></noscript>'
    assert html.count(HEAD) == 1, "the page has one head"
    return html.replace(HEAD, refresh + HEAD)


def with_answer(html: str, question: str, corpus: str, corpora: Sequence[str], answer: str) -> str:
    """Returns the page with `answer` (HTML) in its place; its form holds the question and offers all corpora."""
    assert html.count(ANSWER) == html.count(CORPORA) == html.count(QUESTION) == 1, "the page has one place for each"
    names = dict.fromkeys([*([corpus] if corpus else []), *corpora])
    every = ["*"] if len(corpora) > 1 and corpus != "*" else []
    options = "".join(
        f"<option value='{escape(name)}'{' selected' * (name == corpus)}>{escape(_choice(name))}</option>"
        for name in [*names, *every]
    )
    page = html.replace(CORPORA, CORPORA + options).replace(QUESTION, f'{QUESTION} value="{escape(question)}"')
    return page.replace("<body>", '<body class="plain-page">').replace(ANSWER, answer)


def _choice(corpus: str) -> str:
    return "all corpora" if corpus == "*" else corpus.replace(",", ", ")


def of_answer(answer: Answer) -> str:
    if answer.answer is None or answer.start is None:
        return _card(_unsure(answer))
    if answer.form != "span":
        return _card(f"{_excerpts(answer)}<p class='facts'>{_percent(answer.score)} sure</p>")
    sure = "Pinned" if answer.pinned else f"{_percent(answer.score)} sure"
    where = f", {escape(str(answer.place))}" if answer.place is not None else ""
    return _card(
        f"<p class='answer-text' dir='auto'>{escape(answer.answer)}</p>"
        f"<p class='facts'><span>{sure}, from {_document(answer)}{where}</span></p>"
        f"{_row(answer.place) or ''.join(_sentences(answer, answer.answer, answer.start)) * (not answer.pinned)}"
    )


def _sentences(answer: Answer, words: str, start: int) -> Iterator[str]:
    """The sentences that hold an answer and support it, each a quote; the answer is marked."""
    for part in answer.parts:
        first = start - part.start
        if 0 <= first < len(part.text):
            before, after = part.text[:first], part.text[first + len(words) :]
            yield _quoted(f"{escape(before)}<mark>{escape(words)}</mark>{escape(after)}")
        else:
            yield _quoted(escape(part.text))


def _unsure(answer: Answer) -> str:
    outcome = verdict(answer.absent, answer.parts)
    lead = f"<p class='answer-text'>{escape(outcome[0].upper() + outcome[1:])}.</p>"
    if not answer.parts:
        return lead
    return f"{lead}<p class='lead'>These sentences come nearest.</p>{_excerpts(answer)}"


def _excerpts(answer: Answer) -> str:
    return "".join(
        f"{_row(part.place) or _quoted(escape(part.text))}"
        f"<p class='facts'><span>{_percent(part.score)} sure, from {_link(part.corpus, part.document, part.title)}"
        f"{f', {escape(str(part.place))}' if part.place is not None else ''}</span></p>"
        for part in answer.parts
    )


def _quoted(inside: str) -> str:
    return f"<blockquote class='passage' dir='auto'>{inside}</blockquote>"


def _row(place: Place | None) -> str:
    """Returns the cells of an answer's row with their columns; empty for an answer outside of tables."""
    if place is None or not place.cells:
        return ""
    names = "".join(f"<th>{escape(name)}</th>" for name, _ in place.cells)
    values = "".join(f"<td dir='auto'>{escape(value)}</td>" for _, value in place.cells)
    return f"<div class='row-of-table'><table><tr>{names}</tr><tr>{values}</tr></table></div>"


def of_fault(fault: ShardqaError) -> str:
    return f"<div class='card problem' role='alert'><h3>No answer</h3><p>{escape(str(fault))}</p></div>"


def _card(inside: str) -> str:
    return f"<article class='card answer' aria-label='Answer'>{inside}</article>"


def _document(answer: Answer) -> str:
    assert answer.document is not None, "an answer stands in a document"
    assert answer.document_corpus is not None, "and that in a corpus"
    return _link(answer.document_corpus, answer.document, answer.title)


def _link(corpus: str, document: str, title: str | None) -> str:
    path = f"/v1/documents/{quote(document, safe='')}?{urlencode({'corpus': corpus})}"
    return f"<a href='{escape(path)}'><bdi>{escape(title or document)}</bdi></a>"


def _percent(score: float) -> str:
    return f"{round(100 * score)} %"
