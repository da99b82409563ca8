"""From text to the terms that passages are found by, and from a question to the terms worth looking for.

Analysis is the same for passages, titles and questions: compatibility form, no accents, no case, stems by the script,
as a question of two words does not tell its language; so "Beyoncé's" and "beyonce" meet, as they do in the reader's own
uncased tokenizer. Marks that make another word of one stay: C, C++ and C# are three terms, .NET is more than "net",
10⁵ is no 105. What is written without blanks becomes overlapping runs. One thread at a time may call this file (a
stemmer has a buffer): the worker's loop, and the engine's, which analyses questions as the shards do.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

import Stemmer

from shardqa import languages

PLAIN = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")  # a number with its separators, or a run of letters and digits
MARKS_MATTER = re.compile(r"[+#^]|(?<![\w.])\.[^\W\d_]")  # texts without these need PLAIN alone, which is twice as fast
WORD = re.compile(
    r"\d+(?:[.,]\d+)*\^[+-]?\d+"  # a power
    r"|(?<![\w.])\.(?=[^\W\d_])[^\W_]+"  # .net
    r"|[^\W_]*[^\W\d_]\+\+(?!\+)"  # c++, and c++17
    r"|[^\W_]*[^\W\d_]\+(?![\w+])"  # a grade, a service
    r"|(?<![^\W_])[^\W\d_]#(?![^\W\d_])"  # c#, of one letter: page#part is an address
    rf"|{PLAIN.pattern}"
)
MARKED = re.compile(r"\.?([^\W_]+)[+#]*")  # the plain word within one of those
POWER = re.compile(r"(?<=\d)[⁺⁻]?[⁰¹²³⁴-⁹]+")
POSSESSIVE = re.compile(r"(?<=[\w+#])['’]s\b")
BLANKLESS = re.compile(
    r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]+"
    r"|(?P<syllables>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"  # of Thai, Lao, Burmese and Khmer
)
STOP_WORDS = frozenset(
    (  # noqa: SIM905
        "a about an and any are as at be been being both but by can could did do does doing during each either for "
        "from had has have having he her hers him his how i if in into is it its itself may me might more most much "
        "must my of on one or other our shall she should so some such than that the their them then there these they "
        "this those to too was we were what when where which while who whom whose why will with would you your"
    ).split(" ")
)
"""Words that say nothing about the passage sought; a question looks for them only when it has no others."""

MOST_GROWTH = 4  # times as long; Korean is 2.6 times as long, whose syllables come apart
STEM = 4  # letters that two forms of a word share at least
SHORT = 50  # characters of which it does not matter
IDEOGRAPHS, SYLLABLES = 2, 3  # in a term of a script without blanks; pairs of Thai find 81 of 100, threes 93

_english = Stemmer.Stemmer("english", 0)  # its cache costs more than stemming anew, most of all once it is full
SCRIPTS = {"GREEK": "greek", "CYRILLIC": "russian", "ARMENIAN": "armenian", "ARABIC": "arabic"}
_others = {script: Stemmer.Stemmer(language, 0) for script, language in SCRIPTS.items()}


def fold(text: str) -> str:
    """Returns a word's compatibility form without accents and case; of a text that it lengthens much, no such form."""
    if text.isascii():
        return text.lower()
    apart = POWER.sub(lambda power: "^" + power[0].replace("⁻", "-"), text)  # the compatibility form of 10⁵ is 105
    compatible = unicodedata.normalize("NFKD", apart)
    if len(compatible) > MOST_GROWTH * (len(text) + SHORT):  # one sign may stand for 18 letters (U+FDFA)
        compatible = unicodedata.normalize("NFD", apart)
    return compatible.translate(marks()).casefold()


@functools.cache
def marks() -> dict[int, str | None]:
    """All accents, for str.translate; made with the first text that is not ASCII. The planes left out hold none.

    With them go the vowel signs of India's scripts: most endings of words there. The sharp becomes #: C♯ is not C.
    """
    planes = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    return {**{n: None for n in planes if unicodedata.category(chr(n)) in ("Mn", "Mc")}, ord("♯"): "#"}


def words(text: str) -> list[str]:
    """The words of a text in order, folded and not stemmed."""
    plain = fold(text)
    if "'" in plain or "’" in plain:
        plain = POSSESSIVE.sub("", plain)
    if MARKS_MATTER.search(plain):
        every = [word for match in WORD.findall(plain) for word in forms(match.replace(",", ""))]
    else:
        every = [match.replace(",", "") for match in PLAIN.findall(plain)]
    if text.isascii():
        return every
    return [part for word in every for part in parts(word)]


def forms(word: str) -> tuple[str, ...]:
    """A word itself; of one with marks also the plain word, unless that is a single letter, which is another thing.

    A dot at the front is often a slip or a file's suffix, and "Disney+" is often written without its plus.
    """
    if word[0] != "." and word[-1] not in "+#":
        return (word,)
    match = MARKED.fullmatch(word)
    assert match is not None, word
    return (word,) if len(match[1]) == 1 else (match[1], word)


def parts(word: str) -> list[str]:
    """A word itself; of what is written without blanks its overlapping runs, or the one it is."""
    every, end = list[str](), 0
    for match in BLANKLESS.finditer(word):
        every += [word[end : match.start()]] if match.start() > end else []
        run, size, end = match[0], SYLLABLES if match["syllables"] else IDEOGRAPHS, match.end()
        every += [run[n : n + size] for n in range(max(1, len(run) - size + 1))]
    return every + ([word[end:]] if end < len(word) else [])


def stems(words: list[str]) -> list[str]:
    """Returns the stems of words, one each, in order: by the language that is written most in a word's script."""
    result: list[str] = _english.stemWords(words)
    return result if all(map(str.isascii, words)) else [one if one.isascii() else _stem(one) for one in result]


def _stem(word: str) -> str:
    stemmer = _others.get(unicodedata.name(word[0], "").partition(" ")[0])
    return str(stemmer.stemWord(word)) or word if stemmer else word  # of some words Snowball leaves nothing


@dataclass(frozen=True, slots=True)
class Analysed:
    """The terms of a passage or title."""

    content: list[str]  # in order, with repeats, without stop words
    stop: list[str]  # the stop words, in order, with repeats


def analyse(text: str) -> Analysed:
    content, stop = list[str](), list[str]()
    for word in words(text):
        (stop if word in STOP_WORDS else content).append(word)
    return Analysed(stems(content), stems(stop))


def content(text: str) -> set[str]:
    return set(analyse(text).content)


def matter(text: str) -> set[str]:
    """Returns what a text is about: its words without endings, and without those that any question may have."""
    every = (word for word in words(text) if word not in languages.ENGLISH)
    return {word[: max(STEM, len(word) - 3)] if len(word) > STEM else word for word in every}


def words_with(text: str, terms: Collection[str]) -> list[str]:
    """The words of a text that some of these terms come from, as they stand there, once each."""
    every = dict.fromkeys(match[0] for match in WORD.finditer(text)) if terms else ()
    return [word for word in every if any(term in terms for term in analyse(word).content)]


@dataclass(frozen=True, slots=True)
class Query:
    """What a question looks for, analysed once for all that ask."""

    content: tuple[str, ...]  # terms in the question's order, each once, without stop words
    terms: tuple[str, ...]  # these; stop words where it has nothing else
    pairs: tuple[tuple[str, str], ...]  # content terms that follow one another: names, titles, set phrases
    matter: frozenset[str]  # see `matter`

    @property
    def names(self) -> tuple[str, ...]:
        """Names all that statistics count: the terms, and the pairs with a blank between."""
        return (*self.terms, *(f"{first} {second}" for first, second in self.pairs))


@functools.lru_cache(256)  # each of a question's rounds and passages asks for it
def query(question: str) -> Query:
    """Analyses a question; one without words has neither terms nor pairs.

    Pairs stand for entities: questions reach the shards without capitals, so names can't be told by their look.
    """
    terms = analyse(question)
    pairs = dict.fromkeys(itertools.pairwise(terms.content))
    once, stop = (tuple(dict.fromkeys(every)) for every in (terms.content, terms.stop))
    return Query(once, once or stop, tuple(pairs), frozenset(matter(question)))
