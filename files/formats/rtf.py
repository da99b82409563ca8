"""RTF by striprtf: paragraphs, notes in brackets where they are called, and the rows of tables."""

import re
from collections.abc import Iterator
from itertools import groupby

from striprtf.striprtf import rtf_to_text

from shardqa.errors import BadDocument
from shardqa.files.composer import Composer
from shardqa.files.formats.faults import readable
from shardqa.files.source_file import MAX_BINARY, Item, SourceFile

PICTURE = re.compile(r"\{\\\*?\\?(?:shppict|nonshppict|pict|objdata|themedata|colorschememapping|datastore)\b[^{}]*\}")
RAISED = re.compile(r"\\(super|sub)(?![a-z0-9])[ \n]?((?:\\[a-z]++-?\d*+[ \n]?){0,20})(?=[^\\{}\s])")
NOTE = re.compile(r"\{(?:\\\*)?\\footnote(?![a-z])")
OPENS = "\ue000"  # a note, until its text is known
BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
SWITCHES = re.compile(r"\\(?:v|strike|header[lrf]?)(?![a-z])")
SWITCH = re.compile(r"[{}]|\\(v|strike|striked)(-?\d*)(?![a-z])[ ]?|\\(?:plain|header[lrf]?)(?![a-z])[ ]?|\\[\\{}]")
PARAGRAPH = re.compile(r"\\pard?(?![a-z]) ?")
END_OF_CELL = re.compile(r"\\par(?![a-z])(?=[\s{}]*+\\cell(?![a-z]))")


def read(source: SourceFile) -> Iterator[Item]:
    content = source.read_all(MAX_BINARY).decode("latin-1")
    if not content.lstrip().startswith("{\\rtf"):
        raise BadDocument("not RTF: it does not begin with {\\rtf")
    content, struck = _shown(content)
    content = RAISED.sub(
        lambda found: f"\\{found[1]} {found[2]}{'^' if found[1] == 'super' else '_'}", PICTURE.sub("", content)
    )
    with readable("RTF"):
        text = str(rtf_to_text(_with_notes(END_OF_CELL.sub("", content)), encoding="cp1252", errors="replace"))
    text = re.sub(rf"{OPENS}\s*", "(", text)
    composer = Composer()
    composer.struck += struck
    lines = (line.strip() for line in text.replace("\x00", "").split("\n"))
    for cells, group in groupby(
        (line for line in lines if line), lambda line: line.count("|") if line[-1] == "|" else 0
    ):
        rows = [line[:-1].split("|") for line in group] if cells > 1 else None
        if rows is None:
            for line in group:
                composer.lines(line.rstrip("|"))
        else:
            composer.table(rows)
    yield from source.composed(composer)


def _shown(content: str) -> tuple[str, list[str]]:
    """Returns (what is shown, what is struck out); heads of pages are text as any."""
    pieces, struck, at = list[str](), list[str](), 0
    hidden: list[set[str]] = [set()]  # the switches that hide, by group
    for token in SWITCH.finditer(content) if SWITCHES.search(content) else ():
        if hidden[-1] - {"v"}:
            struck.append(content[at : token.start()])
        elif not hidden[-1]:
            pieces.append(content[at : token.start()])
        at = token.end()
        if token[0] == "{":
            hidden.append(set(hidden[-1]))
        elif token[0] == "}":
            hidden[-1:] = [] if len(hidden) > 1 else [set()]
        elif token[1] and token[2] == "0":
            hidden[-1].discard(token[1])
        elif token[1]:
            hidden[-1].add(token[1])
        elif token[0].startswith("\\plain"):
            hidden[-1].clear()
        is_switch = token[1] or token[0].startswith("\\header")
        pieces.append(token[0] if token[0] in "{}" or not (is_switch or hidden[-1]) else "")
    return "".join([*pieces, content[at:]]), struck


def _with_notes(content: str) -> str:
    """Puts footnotes in brackets: striprtf takes them for what is not printed."""
    pieces, at, groups = list[str](), 0, list[bool]()
    for brace in BRACE.finditer(content) if "\\footnote" in content else ():
        if brace[0] == "{":
            note = NOTE.match(content, brace.start())
            groups.append(note is not None)
            if note is not None:
                pieces += [content[at : note.start()], f"{{ {OPENS}"]
                at = note.end()
        elif brace[0] == "}" and groups and groups.pop():
            pieces += [PARAGRAPH.sub("", content[at : brace.start()]).strip(), ")"]
            at = brace.start()
    return "".join([*pieces, content[at:]])
