"""What a question is about, and how much of that stands where an answer was read.

What a passage says of the Alma does not answer a question about the Berta, however alike the two sentences are. So the
**names** of a question have to stand in the answer's sentence, its row, a heading above or the title: its words with a
capital inside a sentence, its numbers and its codes, in whatever case, inflection or near spelling. Its other words are
weaker signs, as people use words of their own. One thread at a time (`analysis`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from shardqa import analysis
from shardqa.models.span_edges import LABEL

WORD = re.compile(r"[^\W_][\w.'’&+#/-]*")
BEGINS = re.compile(r"(?:^|[.!?:;\n\"“(•|-])\s*$")  # what stands before a word that begins a sentence
NO_NAMES = frozenset(["i", "i'm", "i've", "i'd", "i'll"])
TITLES = frozenset(("captain", "doctor", "dr", "miss", "mister", "mr", "mrs", "ms", "nurse", "prof", "professor"))
DIGITS = {
    word: str(n)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    )
    for n, word in enumerate(words.split(), 1)
}
DATES = "since until after before around year january february march april june july august september october november"
NOT_COUNTED = analysis.STOP_WORDS | {*re.findall(r"\w+", DATES), "december"}
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
NUMBERING = re.compile(r"^\W*(\d+)[.)]?\s", re.MULTILINE)  # of a clause, a step, a section
COUNTED = re.compile(r"[^\W\d_]+(\d+)")
ACRONYM = 6  # letters of the longest that is a name: a longer word in capitals is said aloud
ECHO = 4  # words from which a text with the words of a question may be the question
ASKING = frozenset("who whom whose what when where why how which do does did is are was were can may will".split())  # noqa: SIM905
DAYS = "today tomorrow monday tuesday wednesday thursday friday saturday sunday"
NOBODY = NOT_COUNTED | {*re.findall(r"\w+", DAYS)}
LONG = (6, 9)  # letters from which one letter, or two, of a name may be others


class Heard(NamedTuple):
    """How much of a question is said where an answer was read."""

    missing: float  # 1: the sentence, its row, headings and title lack a name
    lost: float  # 1: the passage lacks one, too
    said: float  # share of the words that the sentence has, 0 to 1
    whole: float  # 1: it has all of them


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about."""

    words: tuple[str, ...]  # stems of what it says beside small words, each once
    names: tuple[str, ...]  # folded, each once
    unknown: frozenset[str]  # names that no passage has
    length: int  # words
    who: bool = False  # a person is asked for

    @classmethod
    @lru_cache(256)  # of one question it is asked for when its words, and when its answer, are looked at
    def of(cls, wording: str, absent: tuple[str, ...] = ()) -> Subject:
        """`absent` are the terms that no passage has, nor a title."""
        names = tuple(dict.fromkeys(names_of(wording)))
        forms = {name: {name, *analysis.stems([name]), *COUNTED.findall(name)} for name in names}
        unknown = frozenset(name for name, own in forms.items() if not own.isdisjoint(absent))
        asking = next((word for word in analysis.words(wording) if word in ASKING), "")
        return cls(analysis.query(wording).content, names, unknown, len(wording.split()), asking in ("who", "whom"))

    def unheard(self, passage: str) -> frozenset[str]:
        """The names that no passage has, without those that this one spells otherwise."""
        return frozenset(name for name in self.unknown if not _has(_vocabulary(passage), name))

    def is_answered(self, text: str, sentence: str) -> bool:
        """Returns whether a text may be an answer: it stands in no question like this one, and for "who" is no date."""
        is_date = self.who and all(word in NOBODY or word.isdigit() for word in analysis.words(text))
        return not is_date and not self.is_echoed(sentence)

    def is_echoed(self, text: str) -> bool:
        """Returns whether a text is the question again, as in lists of questions and in talks: that answers nothing."""
        speaker = LABEL.match(text := text.strip())
        text = text if speaker is None else text[speaker.end() + 2 :]  # after the colon and a blank
        words, own = text.lower().split(), set(self.words)
        if not ECHO <= len(words) <= 2 * self.length or words[0] not in ASKING:
            return False
        return analysis.content(text) >= own if text.endswith("?") else analysis.content(text) == own

    def heard(self, sentence: str, passage: str) -> Heard:
        """`sentence` comes with its row, headings and title, `passage` with its title and headings."""
        own, around = _vocabulary(sentence), _vocabulary(passage)
        missing = [name for name in self.names if not _has(own, name)]
        lost = any(not _has(around, name) for name in missing)
        said = sum(word in own for word in self.words) / max(1, len(self.words))
        return Heard(float(bool(missing)), float(lost), said, float(said == 1))


@lru_cache(1_024)  # each repeat of a question asks for the key of its kept answer, which holds them
def names_of(text: str) -> tuple[str, ...]:
    """Returns the names, numbers and codes of a text, folded: a number with what it counts ("phase3"), no titles."""
    return tuple(_names(text))


def _names(text: str) -> Iterator[str]:
    before = ""
    text = text.lower() if text.isupper() else text
    for match in WORD.finditer(text):
        counted, before = before, match[0].lower()
        word = match[0].rstrip(".'’-/&")
        is_name = word[0].isupper() and not BEGINS.search(text[: match.start()])
        is_code = any(map(str.isdigit, word)) or "_" in word or any(map(str.isupper, word[1:]))
        is_loud = word.isupper() and word.isalpha() and len(word) > ACRONYM
        if (is_name or is_code) and not is_loud and word.lower() not in NO_NAMES | TITLES:
            parts = [part for part in analysis.words(word) if part not in analysis.STOP_WORDS]
            is_counted = parts == [word] and word.isdigit() and counted.isalpha() and counted not in NOT_COUNTED
            yield from [counted + word] if is_counted else parts


@lru_cache(1_024)
def _vocabulary(text: str) -> frozenset[str]:
    """The words of a text, their stems, and neighbours of a code written together ("E 17")."""
    words = analysis.words(text)
    numbered = [DIGITS.get(word, ORDINAL.sub(r"\1", word)) for word in words]
    near = [pair for pair in itertools.pairwise(numbered) if pair[0].isdigit() != pair[1].isdigit()]
    pairs = [one + other for pair in near for one, other in (pair, pair[::-1])]
    clauses = (f"#{number}" for number in NUMBERING.findall(text))
    return frozenset((*words, *analysis.stems(words), *pairs, *numbered, *clauses))


def _has(vocabulary: Collection[str], name: str) -> bool:
    if name in vocabulary or analysis.stems([name])[0] in vocabulary or ORDINAL.sub(r"\1", name) in vocabulary:
        return True
    if any(map(str.isdigit, name)):
        counted = COUNTED.fullmatch(name)
        return counted is not None and f"#{counted[1]}" in vocabulary
    room = sum(len(name) >= letters for letters in LONG)
    return room > 0 and any(
        other[0] == name[0] and OSA.distance(name, other, score_cutoff=room) <= room for other in vocabulary
    )
