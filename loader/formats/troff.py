"""Turns troff's escapes into characters: `\\fB`, `\\(em`, `\\[u00E9]`, `\\*(lq`. Pure functions, linear in the text."""

import re
import unicodedata

NAMED = {
    "em": "—",
    "en": "–",
    "hy": "-",
    "mi": "−",
    "pl": "+",
    "bu": "•",
    "co": "©",
    "rg": "®",
    "tm": "™",
    "de": "°",
    "aq": "'",
    "dq": '"',
    "lq": "“",
    "rq": "”",
    "oq": "‘",
    "cq": "’",
    "ti": "~",
    "ha": "^",
    "rs": "\\",
    "ga": "`",
    "aa": "´",
    "Fo": "«",
    "Fc": "»",
    "fo": "‹",
    "fc": "›",
    "->": "→",
    "<-": "←",
    ">=": "≥",
    "<=": "≤",
    "!=": "≠",
    "mu": "×",
    "di": "÷",
    "+-": "±",
    "12": "½",
    "14": "¼",
    "34": "¾",
    "sc": "§",
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "/o": "ø",
    "/O": "Ø",
    "oa": "å",
    "oA": "Å",
    "sl": "/",
    "ba": "|",
    "br": "|",
    "or": "|",
    "at": "@",
    "sh": "#",
    "Do": "$",
    "Po": "£",
    "Eu": "€",
    "eu": "€",
    "ct": "¢",
    "Ye": "¥",
    "..": "…",
    "ua": "↑",
    "da": "↓",
    "lB": "[",
    "rB": "]",
    "lC": "{",
    "rC": "}",
    "la": "⟨",
    "ra": "⟩",
    "mc": "µ",
    "S2": "²",
    "S3": "³",
    "if": "∞",
    "~=": "≈",
    "*a": "α",
    "*b": "β",
    "*m": "μ",
    "*p": "π",
    "no": "¬",
    "OK": "✓",
    "dg": "†",
    "dd": "‡",
}
ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", ":": "\u0308", "~": "\u0303", ",": "\u0327", "v": "\u030c"}
STRINGS = {"R": "®", "Tm": "™", "lq": "“", "rq": "”", "L<": "<", "R>": ">", "Aq": "'", "C+": "C++", "--": "—"}
"""Strings that the macro packages define, and pod2man."""
ONE = {
    "-": "-",
    "e": "\\",
    "E": "\\",
    "\\": "\\",
    " ": " ",
    "~": " ",
    "0": " ",
    "t": "\t",
    "'": "'",
    "`": "`",
    ".": ".",
}
"""Escapes of one character; those that are not named here move the pen and leave nothing."""
ESCAPE = re.compile(
    r"\\(?:"
    r"\[(?P<long>[^\]\n]{1,40})\]|\((?P<two>..)|C'(?P<char>[^'\n]{1,40})'"
    r"|\*(?:\[(?P<string>[^\]\n]{0,40})\]|\((?P<string2>..)|(?P<string1>.))"
    r"|[fFmMgnVYk](?:\[[^\]\n]{0,40}\]|\(..|[+-]?.)"
    r"|s(?:\[[^\]\n]{0,20}\]|'[^'\n]{0,20}'|\([+-]?\d\d|[+-]?\(?\d{1,2}|[+-])"
    r"|[hvwblLDoXZNASRHx]'[^'\n]{0,200}'"
    r"|(?P<one>.)|$)"
)
COMMENT = re.compile(r'(?<!\\)((?:\\\\)*)\\["#].*')


def plain(text: str, strings: dict[str, str] | None = None) -> str:
    """A line's characters without escapes; `strings` are those the page defines."""
    if "\\" not in text:
        return text
    known = STRINGS if strings is None else strings
    return ESCAPE.sub(lambda match: _character(match, known), text)


def without_comment(line: str) -> str:
    return COMMENT.sub(r"\1", line) if "\\" in line else line


def _character(match: re.Match[str], strings: dict[str, str]) -> str:
    named = match["long"] or match["two"] or match["char"]
    if named is not None:
        return _named(named)
    string = match["string"] or match["string2"] or match["string1"]
    if string is not None:
        return strings.get(string, STRINGS.get(string, ""))
    return ONE.get(match["one"] or "", "")


def _named(name: str) -> str:
    if name in NAMED:
        return NAMED[name]
    if len(name) == 2 and name[0] in ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + ACCENTS[name[0]])
    if re.fullmatch(r"u[0-9A-F]{4,6}(?:_[0-9A-F]{4,6})*", name):
        return unicodedata.normalize("NFC", "".join(_code(int(part, 16)) for part in name[1:].split("_")))
    number = name.removeprefix("char")
    return _code(int(number)) if number != name and number.isascii() and number.isdigit() else ""


def _code(number: int) -> str:
    is_scalar = number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if is_scalar and number else ""
