"""The encoding of a text, by its first bytes: UTF-8 wherever it can be."""

import codecs
import re

from shardqa.errors import BadDocument

GUESS = 1 << 20  # bytes in which a text shows whether it is UTF-8
GUESS_BY = 1 << 16  # bytes that another encoding is told from
MOST_ACCENTS = 0.2  # of a Western text's characters
FEW_CHARACTERS = 4  # characters outside of ASCII from which no other encoding can be told apart

ENCODINGS = re.findall(  # those that people's files are in; among all that Python knows, short texts find exotic ones
    r"\S+",
    "cp1252 cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859_2 iso8859_15 koi8_r koi8_u mac_roman cp437 "
    "cp850 shift_jis euc_jp iso2022_jp gb18030 big5 euc_kr tis_620",
)
WESTERN = (  # French, German and Nordic, Spanish and Portuguese and Italian
    "àâæçéèêëîïôœùûüÿ",
    "äöüßåæøéðþáíóúý",
    "áàâãçéèêíìîñóòôõúùûü",
)
CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ")
JAPANESE = re.compile("[\t-~、。「」々・！-～ぁ-んァ-ヴー一-龠]+")
OF_WINDOWS = re.compile(rb"[\x80-\x9f]")  # what stands in cp1252 alone
HALF = 0.5  # of the second bytes of UTF-16 that are empty in a text of European words
BOMS = (  # the longer first: UTF-32's begins as UTF-16's does
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


NAMED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w-]{2,30})""", re.IGNORECASE)


def named(start: bytes) -> str:
    """Returns the encoding that a page or an XML file names; empty for none, or for one that no files are in."""
    match = NAMED.search(start[:2048])
    try:
        name = codecs.lookup(match[1].decode()).name if match is not None else ""
    except LookupError:
        return ""
    name = "cp1252" if name == "iso8859-1" else name  # as browsers take it
    return name if name in {codecs.lookup(one).name for one in ENCODINGS} else ""


def decoded(content: bytes, likely: str = "") -> str:
    """Bytes as text, newlines as \\n, without a byte order mark; in the encoding `likely` where that fits and UTF-8
    does not. Raises BadDocument.
    """
    encoding = encoding_of(content[:GUESS], is_complete=len(content) <= GUESS, likely=likely)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadDocument(f"invalid {encoding_name(encoding)} at byte {error.start}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def mended(content: bytes, likely: str = "") -> tuple[str, str]:
    """Returns (text as by `decoded`, what may be wrong with it, or an empty text)."""
    try:
        encoding = encoding_of(content[:GUESS], is_complete=len(content) <= GUESS, likely=likely)
        return decoded(content, encoding), "" if encoding == likely else guessed(encoding)
    except BadDocument:
        text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        count = text.count("\ufffd")
        return text, f"{count} characters of it are no UTF-8; save it as UTF-8" if count else ""


def guessed(encoding: str) -> str:
    """Says what a text that names no encoding was taken for; empty for UTF-8, which shows itself."""
    return "" if encoding.startswith("utf") else f"its encoding is named nowhere, and was taken for {encoding}"


def encoding_of(start: bytes, is_complete: bool, likely: str = "") -> str:
    """Returns a text's encoding by its first bytes: UTF-8 wherever it can be, else `likely`. Raises BadDocument."""
    if (name := bom(start)) is not None:
        return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=is_complete)
        return "utf-8-sig"
    except UnicodeDecodeError as error:
        encoding = (likely or _guess(start)) if error.reason != "unexpected end of data" else None  # that one was cut
        if encoding is None:
            raise BadDocument(f"invalid UTF-8 at byte {error.start}; save it as UTF-8") from None
        return encoding


def _guess(start: bytes) -> str | None:
    """Guesses the encoding of bytes that are not all UTF-8; None for damaged UTF-8, or where nothing fits."""
    text = start.decode("utf-8", "replace")
    faults = text.count("\ufffd")
    if sum(character > "\x7f" for character in text) - faults >= faults:
        return None
    if faults < FEW_CHARACTERS:  # too few for statistics: what browsers take, if it can be that
        try:
            start.decode("cp1252")
            return _western(start)
        except UnicodeDecodeError:
            pass
    western = start[:GUESS_BY].decode("cp1252", "replace")
    is_mostly_ascii = sum(character > "\x7f" for character in western) < MOST_ACCENTS * len(western)
    is_western = _is_of_one(western, WESTERN) or _western_or_central(start[:GUESS_BY]) == "cp1252"
    if is_mostly_ascii and is_western and not _signs_in_words(western):
        return _western(start)  # a short one's statistics say as well that it is Mac Roman
    from charset_normalizer import from_bytes

    best = from_bytes(start[:GUESS_BY], cp_isolation=ENCODINGS).best()
    name = str(best.encoding) if best is not None else _japanese(start)
    return _western_or_central(start) or name if name in ("cp1250", "cp1252") else name


def _western(start: bytes) -> str:
    encoding = _western_or_central(start) or "cp1252"
    is_unix = b"\xa4" in start and not OF_WINDOWS.search(start)  # this byte is its euro
    return "iso8859_15" if is_unix and encoding == "cp1252" else encoding


def _western_or_central(start: bytes) -> str | None:
    """Tells cp1252 from cp1250, which differ in few letters and are each other's likeliest mistake; None for either.

    By the one in which no sign stands in a word, else the one whose letters are all of one alphabet.
    """
    western, central = (start.decode(encoding, "replace") for encoding in ("cp1252", "cp1250"))
    signs = _signs_in_words(western) - _signs_in_words(central)
    if signs:
        return "cp1250" if signs > 0 else "cp1252"
    fits = _is_of_one(western, WESTERN), _is_of_one(central, CENTRAL)
    if fits == (False, False):  # a text in several languages
        fits = _is_of_one(western, ("".join(WESTERN),)), False
    return {(True, False): "cp1252", (False, True): "cp1250"}.get(fits)


def _is_of_one(text: str, alphabets: tuple[str, ...]) -> bool:
    letters = {letter for letter in text.lower() if letter > "\x7f" and letter.isalpha()} - {*"ªµº"}
    return any(letters <= set(alphabet) for alphabet in alphabets)


def _signs_in_words(text: str) -> int:
    """Counts signs between letters, as a wrong encoding gives them: m³yn for młyn."""
    return sum(
        not own.isalpha() and own > "\x7f" and before.isalpha() and after.isalpha()
        for before, own, after in zip(text, text[1:], text[2:], strict=False)
    )


def _japanese(start: bytes) -> str | None:
    """Recognizes Shift-JIS in a text too short for statistics: other encodings read as it give half-width kana."""
    text = start.decode("cp932", "replace").rstrip("\ufffd")
    return "cp932" if JAPANESE.fullmatch(text) else None


def bom(start: bytes) -> str | None:
    """Returns the encoding that the first bytes show: by a byte order mark, or by each second byte being 0."""
    of_mark = next((encoding for mark, encoding in BOMS if start.startswith(mark)), None)
    even, odd = start[:GUESS_BY:2], start[1:GUESS_BY:2]
    for encoding, empty, full in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if of_mark is None and len(full) >= FEW_CHARACTERS and empty.count(0) > HALF * len(empty) and 0 not in full:
            return encoding
    return of_mark


def encoding_name(encoding: str) -> str:
    return "UTF-8" if encoding == "utf-8-sig" else encoding
