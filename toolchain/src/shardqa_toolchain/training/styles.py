"""Styles of a question, as other people would put it: keywords, a phrase, with courtesies, misspelt.

The tokenizer takes case and the question mark away, so neither is a style. Each style keeps what is asked for; a text
that has nothing to change comes back as it is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Self

from shardqa.errors import BadData

_FUNCTION_WORDS = (
    "a an the of in on at to for from by with and or is are was were be been being am do does did has have had will "
    "would can could shall should may might must what who whom whose which where when why how that this these those it "
    "its their his her there as into than then so if"
)

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())  # what people leave out of a search box

# A question whose rest names what is asked for.
NAMED = re.compile(r"(?:what|who|where|when|which)(?:'s| is| are| was| were) (.+)", re.IGNORECASE)

COURTESIES = (
    "tell me {}",
    "please tell me {}",
    "do you know {}",
    "can you tell me {}",
    "i want to know {}",
    "{} please",
    "hi, {}",
    "question: {}",
)

LEAST_LETTERS = 5  # of a word that is misspelt: shorter ones become other words

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Styles:
    """Shares of the questions that are put in each style; the rest stays as it is."""

    keywords: float = 0.0
    phrase: float = 0.0
    courtesy: float = 0.0
    misspelt: float = 0.0

    def checked(self) -> Self:
        """Itself; raises BadData for shares that are none."""
        shares = self.keywords, self.phrase, self.courtesy, self.misspelt
        if min(shares) < 0 or sum(shares) > 1:
            raise BadData(f"styles are {self}, shares of 0 or more and of 1 in all are needed")
        return self

    def apply(self, question: str, random: Random) -> str:
        """The question in a style drawn at random."""
        chance = random.random()
        for share, style in self._forms():
            if chance < share:
                return style(question, random)
            chance -= share
        return question

    def _forms(self) -> tuple[tuple[float, Callable[[str, Random], str]], ...]:
        return (
            (self.keywords, keywords),
            (self.phrase, phrase),
            (self.courtesy, courtesy),
            (self.misspelt, misspelt),
        )


def keywords(question: str, _: Random) -> str:
    """Returns the question without its function words; unchanged when fewer than two words would be left."""
    words = [word for word in _bare(question).split() if word.lower() not in FUNCTION_WORDS]
    return " ".join(words) if len(words) > 1 else question


def phrase(question: str, _: Random) -> str:
    """Names what is asked for: "What is the capital of France?" becomes "the capital of France"."""
    match = NAMED.fullmatch(_bare(question))
    return match[1] if match and len(match[1].split()) > 1 else question


def courtesy(question: str, random: Random) -> str:
    """Returns the question with words around it that ask for nothing."""
    return random.choice(COURTESIES).format(_bare(question))


def misspelt(question: str, random: Random) -> str:
    """Returns the question with one slip in one long word: a letter doubled, left out, replaced, or two swapped."""
    words = question.split(" ")
    long = [number for number, word in enumerate(words) if len(word) >= LEAST_LETTERS and word.isalpha()]
    if not long:
        return question
    number = random.choice(long)
    words[number] = _slip(words[number], random)
    return " ".join(words)


def _slip(word: str, random: Random) -> str:
    place = random.randrange(1, len(word) - 1)  # people rarely miss the first letter
    before, letter, after = word[:place], word[place], word[place + 1 :]
    return random.choice(
        (
            before + letter + letter + after,
            before + after,
            before + random.choice(LETTERS) + after,
            before + after[0] + letter + after[1:],
        )
    )


def _bare(question: str) -> str:
    return question.strip().rstrip("?").rstrip()
