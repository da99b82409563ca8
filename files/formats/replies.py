"""Tells the newest words of a mail from those that it quotes, whatever the language: by `>`, and by heads of mails.

mail-parser-reply knows the words of thirteen languages; for 100 kB of `On Tue, ` it takes minutes (docs/decisions.md).
"""

import re
from dataclasses import dataclass, field

QUOTES = re.compile(r"((?:>[ \t]?)*)(.*)")
SAYS = re.compile(r"[@\d]")  # what a line above a quotation has: an address or a date
HEAD = re.compile(r"[ \t]*\*?[^\W\d_][\w -]{0,20}\*?[ \t]?:\*?[ \t](.*\S)")
LEAST = 3  # lines of a mail's head among its text: From, Sent, To
BORDER = re.compile(r"[ \t]*[-_*=]{5,}[^\n]{0,60}")
PAGE = re.compile(
    r"(?i)<(?:div|blockquote)\b[^<>]{0,500}?(?:gmail_quote|yahoo_quoted|moz-cite|divRplyFwdMsg|appendonsend|type=.?cite)"
)


@dataclass(slots=True)
class Part:
    heading: str  # who wrote it and when, as the mail says; empty for the newest
    depth: int = 0  # how often it is quoted
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def of_text(text: str) -> list[Part]:
    """Returns the newest part, which lines between quoted ones belong to, then the quoted ones."""
    parts = [Part("")]
    within = [parts[0]]  # the part that is read now, behind those that it stands in
    split = [QUOTES.fullmatch(line) for line in text.split("\n")]
    lines = [(match[1].count(">"), match[2]) for match in split if match]
    n = 0
    while n < len(lines):
        depth, line = lines[n]
        head = _head(lines, n)
        while line.strip() and depth < within[-1].depth:
            within.pop()
        if depth > within[-1].depth and line.strip():
            parts.append(Part(_taken(within[-1]) or "quoted", depth))
            within.append(parts[-1])
        current = within[-1]
        if len(head) >= LEAST:
            while current.lines and (not current.lines[-1].strip() or BORDER.fullmatch(current.lines[-1])):
                current.lines.pop()
            parts.append(Part(", ".join(head[:2]), current.depth))
            within[-1] = parts[-1]
            n += len(head)
        else:
            current.lines.append(line)
            n += 1
    return [part for part in parts if part.text]


def of_page(page: str) -> tuple[str, str]:
    """Returns (the newest part of a mail in HTML, what it quotes)."""
    match = PAGE.search(page)
    return (page[: match.start()], page[match.start() :]) if match is not None else (page, "")


def _head(lines: list[tuple[int, str]], n: int) -> list[str]:
    """Returns the values of a mail's head that begins at a line; few or none where it is none."""
    values: list[str] = []
    for depth, line in lines[n : n + 8]:
        match = HEAD.fullmatch(line)
        if match is None or depth != lines[n][0]:
            break
        values.append(match[1])
    return values if any(SAYS.search(value) for value in values) and n else []


def _taken(part: Part) -> str:
    """Takes the line or two that introduce a quotation (`On … wrote:`) from the part before it."""
    while part.lines and not part.lines[-1].strip():
        part.lines.pop()
    if not part.lines or not part.lines[-1].rstrip().endswith(":"):
        return ""
    taken = [part.lines.pop()]
    if not SAYS.search(taken[0]) and part.lines and SAYS.search(part.lines[-1]):
        taken.insert(0, part.lines.pop())
    return " ".join(" ".join(taken).split()).rstrip(": ")
