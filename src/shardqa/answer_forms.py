"""The forms that an answer may have, and what a question's words say about them. Pure functions."""

import re
from typing import Literal

from shardqa import languages

Form = Literal["span", "sentences", "list"]
FormChoice = Literal["auto", "span", "sentences", "list"]
"""What a user asks for; `auto` leaves the form to the question and to what was read."""

Wording = Literal["name", "what", "how", "yes", "keywords"]
"""What a question asks for by its words: a name or a number; something or other; a way or a reason; whether
something is so; or nothing, as keywords and statements."""

OF_OTHERS: dict[str | None, Wording] = {"name": "name", "way": "how", "thing": "what", None: "keywords"}
"""By what a question in another language than English asks for."""

NAMES = re.compile(
    r"""\b(?: who | whom | whose | when | where | which
    | how \s (?! (?: do|did|is|are|was|were|can|could|should|would|will|may|to|has|have|had|I|you|we|they|it|the|an?
        |this|that|these|my|your|come)\b | does) [a-z]+ )\b""",  # how wide, how many
    re.VERBOSE,
)
WAYS = re.compile(r"\b(?:how|why|explain|describe|difference between)\b")
THINGS = re.compile(r"\b(?:what|name|define)\b|\bmeaning of\b")
WHETHER = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|shall|should|may|might|must|has|have|had)(?:n't)? "
)

PLURAL = r"(?! (?:this|series|species|news|goes|does|has|is|was)\b ) (?: [a-z-]*[^\Wsiu]s | people | (?:wo)?men )\b"
SEVERAL = re.compile(
    rf"""\b which \s {PLURAL}
    | \b (?:which|what) (?: \s of \s the | \s (?:kind|type|sort|form)s \s of )* \s (?:two|three|four|five|other) \b
    | \b (?:which|what|whose) (?: \s (?:main|[a-z]+(?:al|ic|ve|ous|ent|ant|ble)) )* \s {PLURAL}
        \s (?:do|does|did|are|were|is|was|can|could|should|must|may|will|would|has|have|had|need)\b
    | \b (?:who|what|which) \s (?:are|were) \s (?! .*\b (?:called|named|known)\b )
    | ^ (?: please \s )? (?:list|name|give|enumerate) \s""",
    re.VERBOSE,
)
"""Words that ask for more than one thing: "which lamps", "what are the parts of", "name three rivers"."""


FEWEST_ITEMS = 2  # of a list that nobody asked for by name


def wording(question: str) -> Wording:
    """Returns what a question's words ask for, whatever its case and end mark."""
    language = languages.other_than_english(question)
    if language is not None:
        return OF_OTHERS[languages.asked_for(question, language)]
    text = question.lower().strip()
    if WHETHER.match(text):
        return "yes"
    for kind, words in (("name", NAMES), ("how", WAYS), ("what", THINGS)):
        if words.search(text):
            return kind  # type: ignore[return-value]
    return "keywords"


def asks_for_several(question: str) -> bool:
    return SEVERAL.search(question.lower()) is not None


def chosen(question: str, items: int) -> Form:
    """Returns the form that suits a question, of which so many items were found.

    Words alone choose: between questions that begin alike, neither the span's length nor any margin of reader-v2 told
    on nine sets which people answer by a sentence and which by a span.
    """
    if items >= FEWEST_ITEMS and asks_for_several(question):
        return "list"
    return "span" if wording(question) in ("name", "what") else "sentences"
