"""Finds questions in another language than English, by their script and smallest words, and what they ask for.

The shipped reader, its tokenizer and the index's stems know English: a question in another language gets a warning
there. The words of languages are in languages.toml. Pure functions.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path

WORD = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(
    """
    about all an and any are as at be been but by called can city could country did do does during each first for
    found from get give go had has have he her him his how if in into is it its kind last long made many may me mean
    more most much must my name named no not of old on one or other our over people she should so some than that the
    their them there these they this time to type under up us used was way we were what when where which while who
    whom whose why will with would year you your
    """.split()  # noqa: SIM905
)
ASKS = frozenset(("who", "whom", "whose", "what", "when", "where", "why", "how", "which", "did", "does"))
"""A question that begins so is English, whatever it names."""
SCRIPTS = {"Cyrillic": "Russian", "Cjk": "Chinese", "Hangul": "Korean", "Devanagari": "Hindi"} | {
    name: name for name in ("Arabic", "Greek", "Thai", "Hebrew", "Armenian", "Georgian", "Bengali", "Tamil", "Telugu")
}
"""The language that is written most in a script."""
SIGNS = {"Ukrainian": frozenset("іїєґ"), "Persian": frozenset("پچژگ"), "Urdu": frozenset("ٹڈڑے")}  # in no other one
OTHERS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
WORDS = {
    name: frozenset(word for word in own["small"].split() if len(word) > 1) - ENGLISH
    for name, own in OTHERS.items()
    if "small" in own
}
"""The words that are most frequent in questions; those that are English, too, and letters count for nothing."""
LETTERS = {name: own["letters"] for name, own in OTHERS.items() if "letters" in own}
"""Each that stands in a question counts as much as a word."""
READ = 20_000  # characters of a text that tell its language
ASKS_FOR = ("name", "way", "thing")
NO_BLANKS = ("Chinese", "Japanese", "Thai")  # where a word is looked for anywhere


@lru_cache(256)  # of one question its names, its form and its warnings ask
def other_than_english(question: str) -> str | None:
    """The language or script that a question seems to be written in, when that is not English."""
    script = _script(question)
    if script is not None:
        return script
    words = WORD.findall(question.lower())
    if words[:1] and words[0] in ASKS:
        return None
    english, signs = sum(word in ENGLISH for word in words), set() if question.isascii() else set(question.lower())
    counts = Counter({name: sum(word in frequent for word in words) for name, frequent in WORDS.items()})
    counts.update({name: len(signs.intersection(letters)) for name, letters in LETTERS.items() if signs and words})
    ((name, count),) = counts.most_common(1)
    is_told = count > 1 or "?" in question or signs.intersection(LETTERS.get(name, ""))  # else it is a word of keywords
    return name if count > english and is_told else None


def share_of_english(text: str) -> float:
    """Returns the share of a text's first READ characters, by lines, that is in no other language."""
    lines = [line for line in text[:READ].splitlines() if line.strip()]
    others = sum(len(line) for line in lines if other_than_english(line) is not None)
    return 1 - others / max(1, sum(map(len, lines)))


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    words = ("|".join(OTHERS[language][part].replace("_", r"\s+").split()) for part in ASKS_FOR)
    return [re.compile(one if language in NO_BLANKS else rf"(?<!\w)(?:{one})(?!\w)") for one in words]


def asked_for(question: str, language: str) -> str | None:
    """Returns for what of ASKS_FOR a question asks, by its words; None for none of it, as keywords."""
    patterns = _patterns(language) if "name" in OTHERS.get(language, {}) else []
    found = (part for part, pattern in zip(ASKS_FOR, patterns, strict=False) if pattern.search(question.lower()))
    return next(found, None)


def warnings(question: str) -> list[str]:
    """The warnings of an Answer by the reader of English."""
    language = other_than_english(question)
    if language is None:
        return []
    way = "ask in English, or push the pair of many languages (docs/models.md)"
    return [f"the question seems to be {language}, and the reader has learnt English alone: {way}"]


def _script(text: str) -> str | None:
    """The first script where most letters are not Latin, as Japanese has three; Greek in a formula is a few letters."""
    if text.isascii():
        return None
    scripts = Counter(
        "Latin" if character.isascii() else unicodedata.name(character, "?").partition(" ")[0].capitalize()
        for character in text
        if character.isalpha()
    )
    letters, latin = scripts.total(), scripts.pop("Latin", 0)
    if 2 * latin >= letters:
        return None
    if scripts["Hiragana"] + scripts["Katakana"]:
        return "Japanese"
    name = scripts.most_common(1)[0][0]
    marked = next((language for language, signs in SIGNS.items() if not signs.isdisjoint(text.lower())), None)
    return (marked if name in ("Cyrillic", "Arabic") else None) or SCRIPTS.get(name, f"in another script ({name})")
