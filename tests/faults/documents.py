"""Documents in versions that can be told apart by any span, and the questions that they answer."""

from dataclasses import dataclass

PLACES = ("Arnsby", "Belmore", "Corvin", "Dunwick", "Estrel", "Farholm", "Gilmere", "Hartwell", "Ilvane", "Jessop")
THINGS = ("lighthouse", "bridge")
NAMES = tuple(f"{thing} of {place}" for thing in THINGS for place in PLACES)
LONG = (NAMES[3], NAMES[14])  # of more than 64 passages: they are written in several frames
FIRST = ("Ada", "Bruno", "Clara", "Doris", "Emil", "Frida", "Georg", "Hanna", "Ivar", "Johanna", "Karl", "Lena", "Mats")
LAST = ("Lund", "Berg", "Falk", "Holm", "Strand", "Quist", "Ahlgren", "Nyman", "Rask", "Viken", "Ostrom")
PARAGRAPHS = 400  # of a long document


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    about: str | None  # document that is ranked first; None where many passages of one share its place
    answer: str  # of the version it was made for, or what a right answer holds


def builder(version: int) -> str:
    return f"{FIRST[version % len(FIRST)]} {LAST[version % len(LAST)]}"


def year(version: int) -> int:
    return 1400 + version % 600


def text(document: str, version: int) -> str:
    """No two versions have the same words at the same place. Only a long document has PARAGRAPHS."""
    head = f"Leaflet {'I' * (version % 7 + 1)}. The {document} was built by {builder(version)} in {year(version)}."
    rest = "It still stands and is open to visitors in summer."
    if document not in LONG:
        return f"{head} {rest}"
    more = " ".join(
        f"In entry {n} of log {version} the keeper of the {document} tells of the sea." for n in range(PARAGRAPHS)
    )
    return f"{head} {rest}\n\n{more}"


def questions(document: str, version: int = 0) -> tuple[Question, Question]:
    about = None if document in LONG else document
    return (
        Question(f"Who built the {document}?", about, builder(version)),
        Question(f"When was the {document} built?", about, str(year(version))),
    )
