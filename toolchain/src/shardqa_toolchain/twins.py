"""Twins of questions: one name, code, number, date or place is exchanged for another, so that the passage that answered
the question does not answer its twin.

Everything is found by form. A name is a run of capitalised words inside a sentence; a question in small letters names
what its passage writes so. After a preposition of place a name is a place.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

NAME, PLACE, CODE, NUMBER, DATE = "name", "place", "code", "number", "date"

NEAR = 0.4  # share of the terms that come from the passage itself, where it has another of the kind

DAYS_AND_MONTHS = (
    "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|"
    "January|February|March|April|May|June|July|August|September|October|November|December"
)

CODE_FORM = re.compile(
    r"""(?<![\w.-]) (?:
        --?[a-z][\w-]+                    # an option
      | [A-Za-z]+[-_.]?\d[\w-]*(?:\.\d+)* # E17, v1.2, KP-77
      | \d+[A-HJ-Z]\b                     # 2B
      | \w+[_]\w+ | [a-z]+[A-Z]\w+ | [A-Z][a-z]+[A-Z]\w+ | [A-Z][a-z]+-[A-Z]\w+
      | \w[\w-]*\.[a-z]{2,4}\b            # a file
    )""",
    re.VERBOSE,
)
NUMBER_FORM = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?![\w-])")
DATE_FORM = re.compile(rf"\b(?:{DAYS_AND_MONTHS})\b")
NAME_FORM = re.compile(r"\b[A-Z][\w’'&]*(?:[ -](?:(?:of|the|de|van|von|and|for) )?[A-Z][\w’'&]*)*")
FORMS = ((DATE, DATE_FORM), (CODE, CODE_FORM), (NUMBER, NUMBER_FORM), (NAME, NAME_FORM))

PLACE_BEFORE = re.compile(r"\b(?:in|at|from|near|to|of the city of)\s+\Z", re.IGNORECASE)
SENTENCE_BEFORE = re.compile(r"(?:\A|[.!?:;•|\n#*>\"“(-])\s*\Z")
NOT_NAMES = (
    "a an and are as at be but by can could did do does for from had has have he her his how i i'm i've if in is it "
    "its my no not of on or our she should so that the their there they this to was we were what what's when where "
    "which who who's whose why will with would you your"
)
NO_NAMES = frozenset(NOT_NAMES.split())
POSSESSIVE = re.compile(r"[’']s?\Z")


@dataclass(frozen=True, slots=True)
class Term:
    """What may be exchanged, and where it stands."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Twin:
    """A question about another thing."""

    question: str
    former: Term  # of the question that it was made from
    text: str  # what stands in its place


def terms(text: str) -> list[Term]:
    """Returns names, places, codes, numbers and dates of a text, in their order; no two share a character."""
    found: list[Term] = []
    for kind, form in FORMS:
        for match in form.finditer(text):
            for term in _names(text, match) if kind == NAME else [Term(kind, match[0], match.start())]:
                if all(term.end <= one.start or one.end <= term.start for one in found):
                    found.append(term)
    return sorted(found, key=lambda one: one.start)


def _names(text: str, match: re.Match[str]) -> Iterator[Term]:
    """The name of a run of capitalised words, without what is capitalised for its place in the sentence alone."""
    start, words = match.start(), POSSESSIVE.sub("", match[0])
    first, _, rest = words.partition(" ")
    if first.lower() in NO_NAMES:
        start, words, first = start + len(first) + 1, rest, ""
    elif not rest and SENTENCE_BEFORE.search(text[:start]) and not first[1:].isupper():
        return
    if len(words) > 1 and words.lower() not in NO_NAMES:
        yield Term(PLACE if PLACE_BEFORE.search(text[max(0, start - 20) : start]) else NAME, words, start)


class TwinMaker:
    """Makes twins of questions about the passages of some sources."""

    def __init__(self, sources: Mapping[str, Iterable[str]]) -> None:
        """Collects the terms of each source's texts."""
        self._pools = {name: _by_kind(texts) for name, texts in sources.items()}
        self._names = [*self._pools]

    def twin(self, question: str, passage: str, source: str, dice: Random, near: float = NEAR) -> Twin | None:
        """Returns a twin of a question that the passage answers; None where nothing in it can be exchanged.

        The other term comes from the passage in ``near`` of the cases, where it has one of the kind; else from the
        source, which need not be one of those known, and then from any. Numbers are changed digit by digit.
        """
        own = terms(passage)
        exchangeable = asked_terms(question, own)
        for former in dice.sample(exchangeable, len(exchangeable)):
            other = self._other(former, question, own, source, dice, near)
            if other is not None:
                other = other.lower() if former.text.islower() else other
                return Twin(question[: former.start] + other + question[former.end :], former, other)
        return None

    def _other(
        self, former: Term, question: str, own: list[Term], source: str, dice: Random, near: float
    ) -> str | None:
        if dice.random() < near and (fitting := _fitting(former, (one for one in own), question)):
            return dice.choice(fitting)
        if former.kind in (NUMBER, CODE) and any(map(str.isdigit, former.text)):
            return other_digits(former.text, dice)
        for name in (source, *dice.sample(self._names, min(8, len(self._names)))):
            pool = self._pools.get(name, {}).get(former.kind, [])
            drawn = [Term(former.kind, one, 0) for one in dice.sample(pool, min(20, len(pool)))]
            if fitting := _fitting(former, drawn, question):
                return dice.choice(fitting)
        return None


def asked_terms(question: str, passage: Iterable[Term]) -> list[Term]:
    """Returns a question's terms: those of its own form, and what its passage writes as a name."""
    found = terms(question)
    for text, kind in {one.text: one.kind for one in passage if one.kind in (NAME, PLACE, CODE, DATE)}.items():
        for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", question, re.IGNORECASE):
            if all(match.end() <= one.start or one.end <= match.start() for one in found):
                found.append(Term(kind, match[0], match.start()))
    return found


def other_digits(text: str, dice: Random) -> str:
    """Returns a number or code with other digits, as many, without a zero in front that it had not."""
    while True:
        other = re.sub(r"\d", lambda match: dice.choice("123456789" if match.start() == 0 else "0123456789"), text)
        if other != text:
            return other


def _fitting(former: Term, candidates: Iterable[Term], question: str) -> list[str]:
    """Texts of the same kind that name something else than the question does."""
    known = _words(question)
    return [one.text for one in candidates if one.kind == former.kind and not known & _words(one.text)]


def _words(text: str) -> set[str]:
    """The words of a text without their endings, as one name may be told by several forms."""
    return {POSSESSIVE.sub("", one).rstrip("s") for one in re.findall(r"[\w’'.-]+", text.lower())} - NO_NAMES


def _by_kind(texts: Iterable[str]) -> dict[str, list[str]]:
    pool = defaultdict[str, dict[str, None]](dict)
    for text in texts:
        for term in terms(text):
            pool[term.kind][term.text] = None
    return {kind: [*found] for kind, found in pool.items()}
