"""Light markup as it reads: AsciiDoc, Org, LaTeX, Typst, wiki text, calendars and cards; comments are no text.

Each becomes headings and paragraphs, rows of tables as lines with tabs. What a document defines is put in.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import PurePath

from pylatexenc.latex2text import LatexNodes2Text

from shardqa.checks import MAX_DOCUMENT
from shardqa.files.composer import Composer, one_line
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import Item, SourceFile

ATTRIBUTE = re.compile(r"^:([\w-]+):[ \t]*(.*)\n", re.MULTILINE)
COMMENT_BLOCK = re.compile(r"^////+\n.*?^////+\n", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"(?:={4,}|-{4,}|\.{4,}|\*{4,}|_{4,}|--|\+|\[[^\]]*\])")
CELLS = re.compile(r"(?:^|[ \t])(?:\d+[.\d]*\+)?[<^>]?[aehlmsv]?\|")
EMPHASIS = (r"(?<!\w)([*/_`=~+#])(?=\S)([^\n]{0,200}?\S)\1(?!\w)", r"\2")
MARKS = ((r"<<([^<>,]{1,200}),([^<>]{1,200})>>", r"\2"), (r"<<([^<>]{1,200})>>", r"\1"),
         (r"(?<!\S)(?:link:|xref:)?\S{1,300}?\[([^\[\]]{1,200})\]", r"\1"), EMPHASIS)  # fmt: skip
ORG_MARKS = ((r"\[\[[^\[\]]{1,300}\]\[([^\[\]]{1,300})\]\]", r"\1"), (r"\[\[([^\[\]]{1,300})\]\]", r"\1"),
             (r"<(\d{4}-[^<>]{1,40})>", r"\1"), EMPHASIS)  # fmt: skip
MOST = 200  # definitions of a document that are put in
STATE = re.compile(r"(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(.*?)(?:[ \t]+:[\w:@]+:)?")
DEFINITION = re.compile(r"\\(?:re)?newcommand\*?\{?\\([A-Za-z]+)\}?\{([^{}]*)\}")
GROUP = r"\{[^{}]*+(?:\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*\}[^{}]*+)*\}\s*"
ENVIRONMENT = re.compile(rf"\\(?:re)?newenvironment\*?\s*{GROUP}(?:\[[^\[\]]*\]\s*)*{GROUP}{GROUP}")
"""Its definition begins environments without an end, each of which doubles the library's time."""
MACRO = re.compile(r"\\([A-Za-z]+)(?:\{\})?")
SECTION = re.compile(r"(?=\\(?:part|chapter|(?:sub)*section)\b)")
HEAD = re.compile(r"\\(title|author)\{((?:[^{}]|\{[^{}]*\})*)\}|\\maketitle")
NAMES = {"DTSTART": "Start", "DTEND": "End", "DTSTAMP": "", "UID": "", "VERSION": "", "PRODID": "", "SEQUENCE": "",
         "FN": "Name", "N": "", "TEL": "Telephone", "EMAIL": "E-mail", "ORG": "Organization", "ADR": "Address",
         "BDAY": "Birthday", "SUMMARY": "Summary"}  # fmt: skip
PROPERTY = re.compile(r"""([\w.-]+)((?:;[^:"]*(?:"[^"]*"[^:"]*)*)?):(.*)""")  # name, parameters, value
PERSON = re.compile(r""";CN="?([^";:]+)""")
UNREAD = ("VCALENDAR", "VALARM", "VTIMEZONE", "STANDARD", "DAYLIGHT")  # whose own properties are no text
DATE = re.compile(r"(\d{8})(?:T(\d{4}))?\d{0,2}Z?")
Blocks = Iterator[tuple[int, str]]
"""(level of a heading or 0 for a paragraph, words)"""


def read(source: SourceFile) -> Iterator[Item]:
    name = source.name.lower().removesuffix(".gz")
    text = source.text(MAX_DOCUMENT)
    composer = Composer()
    title = ""
    with readable("a text of its kind"):
        lines: list[str] = []  # of a paragraph that has not ended yet
        for level, words in chain(READERS[PurePath(name).suffix](text), [(0, "")]):
            if words.strip() and not level:
                lines.append(words)
                continue
            composer.lines("\n".join(lines))
            lines = []
            if level:
                composer.heading(words, level)
                title = title or one_line(words)
    yield from source.composed(composer, title)


def _asciidoc(text: str) -> Blocks:
    values = dict(ATTRIBUTE.findall(text)[:MOST])
    text = ATTRIBUTE.sub("", COMMENT_BLOCK.sub("", text))
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    lines = [line for line in text.split("\n") if not re.match(r"//(?!/)", line)]
    rows, width, cells, is_table = list[str](), 0, list[str](), False
    for line in [*lines, ""]:
        if line.strip() in ("|===", "!==="):
            if is_table:
                yield 0, "\n".join([*rows, *_cut(cells, width)])
            rows, width, cells, is_table = [], 0, [], not is_table
        elif is_table:
            own = [_plain(cell.strip(), MARKS) for cell in CELLS.split(line)[1:]]
            width = width or len(own)
            cells += own
            if not own and line.strip() and cells:
                cells[-1] = f"{cells[-1]} {line.strip()}"
        elif match := re.match(r"(=+)[ \t]+(.*)", line):
            yield len(match[1]), _plain(match[2], MARKS)
        elif match := re.match(r"(.*\S)::[ \t]+(.*)", line):
            yield 0, f"{_plain(match[1], MARKS)}: {_plain(match[2], MARKS)}"
        elif not FENCE.fullmatch(line.strip()):
            yield 0, _plain(re.sub(r"^\.(?=\w)", "", re.sub(r"^[*.]+[ \t]+", "- ", line)), MARKS)


def _cut(cells: list[str], width: int) -> Iterator[str]:
    for n in range(0, len(cells), max(width, 1)):
        yield "\t".join(cells[n : n + width])


def _org(text: str) -> Blocks:
    is_comment = False
    rows: list[str] = []
    for line in [*text.split("\n"), ""]:
        word = line.strip().lower()
        if is_comment or word == "#+begin_comment":
            is_comment = word != "#+end_comment"
            continue
        if re.match(r"[ \t]*\|", line):
            if not re.match(r"[ \t]*\|[-+]+\|?[ \t]*$", line):
                rows.append("\t".join(_plain(cell.strip(), ORG_MARKS) for cell in line.strip().strip("|").split("|")))
            continue
        if rows:
            yield 0, "\n".join(rows)
            rows = []
        if match := re.match(r"(\*+)[ \t]+(.*)", line):
            yield len(match[1]) + 1, _plain((STATE.fullmatch(match[2]) or match)[1], ORG_MARKS)
        elif match := re.match(r"#\+title:[ \t]*(.*)", line, re.IGNORECASE):
            yield 1, match[1]
        elif match := re.match(r"[ \t]*(?:#\+)?(?::?)(author|date|[A-Z]+):[ \t]+(.*)", line, re.IGNORECASE):
            yield 0, f"{match[1].capitalize()}: {_plain(match[2], ORG_MARKS)}"
        elif not re.match(r"[ \t]*(?:#( |\+|$)|:[A-Z_]+:[ \t]*$)", line):
            yield 0, _plain(re.sub(r"[ \t]+::[ \t]+", ": ", line.strip()), ORG_MARKS)


def _latex(text: str) -> Blocks:
    text = re.sub(r"(?<!\\)%.*", "", text)
    values = dict(DEFINITION.findall(text)[:MOST])
    text = MACRO.sub(lambda macro: values.get(macro[1], macro[0]), ENVIRONMENT.sub("", DEFINITION.sub("", text)))
    for match in HEAD.finditer(text):
        if match[1]:
            words = one_line(_unlatexed(match[2].replace("\\and", ",")).replace(" ,", ","))
            yield (1, words) if match[1] == "title" else (0, f"Author: {words}")
    body = text.partition(r"\begin{document}")[2].partition(r"\end{document}")[0] or text  # not how it is set
    parts = SECTION.split(HEAD.sub("", body))
    plain = re.sub(r"(?<=\S) {5}(?=\S)", "\t", "\n\n".join(map(_unlatexed, parts)))
    plain = re.sub(r"(\t[^\n]*)\n\s*\n(?=[^\n]*\t)", r"\1\n", plain)
    for paragraph in re.split(r"\n\s*\n", plain):
        words = "\n".join(line.strip() for line in paragraph.strip().split("\n"))
        if heading := re.fullmatch(r"((?:§\.?)+) (.*)", words):
            yield 1 + heading[1].count("§"), heading[2].capitalize()
        else:
            yield 0, re.sub(r"^\* ", "- ", words, flags=re.MULTILINE)
            yield 0, ""


def _unlatexed(text: str) -> str:
    return str(LatexNodes2Text(math_mode="text").latex_to_text(text))


def _typst(text: str) -> Blocks:
    text = re.sub(r"(?<!:)//.*", "", _without(text, "/*", "*/"))
    yield from _headed(text, r"(=+)[ \t]+(.*)", [EMPHASIS])


def _wiki(text: str) -> Blocks:
    text = _without(text, "<!--", "-->")
    marks = ((r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1"), (r"\[https?:\S+ ([^\[\]]+)\]", r"\1"), (r"'{2,}", ""))
    yield from _headed(text, r"(=+)[ \t]*(.*?)[ \t]*=+[ \t]*", marks)


def _without(text: str, begin: str, end: str) -> str:
    first, *others = text.split(begin)
    return "".join([first, *(other.partition(end)[2] for other in others)])


def _headed(text: str, heading: str, marks: Iterable[tuple[str, str]]) -> Blocks:
    for line in text.split("\n"):
        match = re.fullmatch(heading, line)
        yield (len(match[1]), _plain(match[2], marks)) if match else (0, _plain(line, marks))


def _entries(text: str) -> Blocks:
    """Takes calendars (ics) and cards (vcf): each entry under its summary, wherever it stands, a property a line."""
    open_ones: list[list[tuple[int, str]]] = [[]]
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        if (match := PROPERTY.fullmatch(line)) is None:
            continue
        name = match[1].upper().rpartition(".")[2]
        value = re.sub(r"\\([,;\\])", r"\1", match[3].replace("\\n", "\n")).strip()
        shown = NAMES.get(name, name.capitalize())
        if name == "BEGIN":
            open_ones.append([])
        elif name == "END":
            own = sorted(open_ones.pop() if len(open_ones) > 1 else [], key=lambda block: -block[0])
            own = own if len(own) > 2 else [(level, words.replace(":\t", ": ", 1)) for level, words in own]
            yield from own if value.upper() not in UNREAD else ()
        elif name in ("SUMMARY", "FN"):
            open_ones[-1].append((1, value))
        elif not name.startswith("X-") and shown and value:
            if name in ("DTSTART", "DTEND", "DUE", "BDAY", "CREATED"):
                value = _date(value)
            if person := PERSON.search(match[2]):
                value = f"{person[1]} ({value.removeprefix('mailto:')})"
            value = " ".join(value.replace(";", " ").split()) if name in ("ADR", "ORG") else value
            open_ones[-1].append((0, f"{shown}:\t{value}" if "\n" not in value else f"{shown}: {value}"))
    yield from chain.from_iterable(open_ones)


def _date(value: str) -> str:
    """Returns a date of a calendar as people write it; one that is none as it stands."""
    match = DATE.fullmatch(value)
    try:
        day = datetime.strptime(match[1], "%Y%m%d").strftime("%-d %B %Y") if match else ""
    except ValueError:
        return value
    time = f", {match[2][:2]}:{match[2][2:]}" if match and match[2] else ""
    return f"{day}{time}{' UTC' * value.endswith('Z')}" if day else value


def _plain(line: str, marks: Iterable[tuple[str, str]]) -> str:
    for pattern, words in marks:
        line = re.sub(pattern, words, line)
    return line


READERS: dict[str, Callable[[str], Blocks]] = {
    **dict.fromkeys((".adoc", ".asciidoc"), _asciidoc),
    ".org": _org,
    ".tex": _latex,
    ".typ": _typst,
    **dict.fromkeys((".wiki", ".mediawiki"), _wiki),
    **dict.fromkeys((".ics", ".vcf"), _entries),
}
