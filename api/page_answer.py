"""The answer for a browser without JavaScript: a piece of HTML for the page's <noscript>.

Documents are hostile: every text goes in escaped, and as text alone.
"""

from html import escape
from urllib.parse import quote, urlencode

from shardqa.errors import ShardqaError
from shardqa.schema import Answer

ANSWER = "<!-- answer -->"  # where the page takes it
CORPORA = '<select id="corpus" name="corpus">'
HEAD = "</head>"


def sent_on(html: str, question: str, corpus: str) -> str:
    """The page, which sends a browser without JavaScript on to its plain form."""
    query = urlencode({"q": question, **({"corpus": corpus} if corpus else {}), "plain": "1"})
    refresh = f'<noscript><meta http-equiv="refresh" content="0; url=/?{escape(query)}"></noscript>'
    assert html.count(HEAD) == 1, "the page has one head"
    return html.replace(HEAD, refresh + HEAD)


def with_answer(html: str, corpus: str, answer: str) -> str:
    """The page with a piece of HTML in its place for answers; its form asks the same corpus again."""
    assert html.count(ANSWER) == html.count(CORPORA) == 1, "the page has one place for an answer, and one for corpora"
    option = f'<option value="{escape(corpus)}" selected>{escape(corpus)}</option>' if corpus else ""
    return html.replace(ANSWER, answer).replace(CORPORA, CORPORA + option)


def of_answer(answer: Answer) -> str:
    if answer.answer is None or answer.start is None or answer.passage is None or answer.passage_start is None:
        return _card(_unsure(answer))
    if answer.form != "span":
        return _card(f"{_excerpts(answer)}<p class='facts'>{_percent(answer.score)} sure</p>")
    first = answer.start - answer.passage_start
    before, after = answer.passage[:first], answer.passage[first + len(answer.answer) :]
    where = f", {escape(str(answer.place))}" if answer.place is not None else ""
    return _card(
        f"<p class='answer-text' dir='auto'>{escape(answer.answer)}</p>"
        f"<p class='facts'>{_percent(answer.score)} sure, from {_document(answer)}{where}</p>"
        f"<blockquote class='passage' dir='auto'>{escape(before)}<mark>{escape(answer.answer)}</mark>"
        f"{escape(after)}</blockquote>"
    )


def _unsure(answer: Answer) -> str:
    if not answer.parts:
        return f"<p class='answer-text'>The documents don’t say.</p><p class='lead'>{_nothing_near(answer)}</p>"
    lead = "<p class='answer-text'>No sure answer.</p><p class='lead'>These sentences come nearest.</p>"
    return f"{lead}{_excerpts(answer)}"


def _excerpts(answer: Answer) -> str:
    return "".join(
        f"<blockquote class='passage' dir='auto'>{escape(part.text)}</blockquote>"
        f"<p class='facts'>{_percent(part.score)} sure, from {_link(answer.corpus, part.document, part.title)}"
        f"{f', {escape(str(part.place))}' if part.place is not None else ''}</p>"
        for part in answer.parts
    )


def _nothing_near(answer: Answer) -> str:
    return f"No passage of {escape(answer.corpus)} has the words of this question."


def of_fault(fault: ShardqaError) -> str:
    return f"<div class='card problem' role='alert'><h3>No answer</h3><p>{escape(str(fault))}</p></div>"


def _card(inside: str) -> str:
    return f"<article class='card answer' aria-label='Answer'>{inside}</article>"


def _document(answer: Answer) -> str:
    assert answer.document is not None, "an answer stands in a document"
    return _link(answer.corpus, answer.document, answer.title)


def _link(corpus: str, document: str, title: str | None) -> str:
    path = f"/v1/documents/{quote(document, safe='')}?{urlencode({'corpus': corpus})}"
    return f"<a href='{escape(path)}'><bdi>{escape(title or document)}</bdi></a>"


def _percent(score: float) -> str:
    return f"{round(100 * score)} %"
