"""Manual pages: troff with the macros of -man or -mdoc, as `man` shows them, without running troff.

What a page defines for itself (`.de`), its conditions for typesetters and its drawings are passed over.
"""

import re
from collections.abc import Iterator

from shardqa.config import MAX_DOCUMENT
from shardqa.errors import BadDocument
from shardqa.loader.composer import Composer, one_line
from shardqa.loader.formats import mdoc, tbl, troff
from shardqa.loader.source_file import Item, SourceFile, Textless

REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*(.*)", re.DOTALL)
STARTS = re.compile(r"""\s*(?:[.'](?:\\"|\s|$)|[.'](?:TH|Dd|SH|Sh|so|de|ds|nr|if|ie|ig|mso|do)\b|'\\")""")
WORD = re.compile(r'"((?:[^"]|"")*)"?|((?:\\ |\S)+)')
BULLETS = frozenset("•*-o+·–—")
FONTS = frozenset({"B", "I", "SM", "SB", "R"})
ALTERNATING = frozenset({"BR", "RB", "IR", "RI", "BI", "IB"})
OWN_LINE = frozenset({"D1", "Dl", "Fn", "In", "Ft", "Cd"})
ENDS = {"de": "..", "de1": "..", "am": "..", "ig": "..", "EQ": ".EN", "PS": ".PE", "GS": ".GE"}


def is_troff(text: str) -> bool:
    """Whether a text begins as a manual page does, comments aside."""
    for line in text.split("\n")[:200]:
        if line.startswith((".TH ", ".Dd ", ".Dt ", ".SH ", ".Sh ", ".so ")):
            return True
        if line.strip() and not STARTS.match(line) and not line.startswith((".", "'", "\\", " ", "\t", "}")):
            return False
    return False


def read(source: SourceFile) -> Iterator[Item]:
    """A page, or a text whose name ends like a page's (`syslog.1`)."""
    text = source.text(MAX_DOCUMENT)
    if not is_troff(text):
        yield source.document(text)
        return
    page = ManualPage()
    page.add(text)
    if page.link and not page.composer.text:
        yield Textless(source.label, "links to other pages")
        return
    if not page.composer.text:
        raise BadDocument(
            "no text in it: a manual page of other macros than -man and -mdoc; convert it by man or groff"
        )
    yield source.composed(page.composer, page.title)


class ManualPage:
    """One page on its way from lines to blocks."""

    def __init__(self) -> None:
        self.composer = Composer()
        self.title = ""
        self.link = ""  # the page that this one only names
        self._strings: dict[str, str] = {}
        self._mdoc = mdoc.MdocLines()
        self._words: list[str] = []  # of the paragraph that has not ended yet
        self._lead = ""  # bullet of the item that begins
        self._follows = False  # the next block stands below its tag, without a blank line
        self._depth = 1  # of tags: those between .RS and .RE explain the one above
        self._awaits = ""  # what the next line of text is: a heading's level, or a tag
        self._literal = False
        self._section = ""  # the heading in force
        self._link = ""  # address that ends at .UE

    def add(self, text: str) -> None:
        lines = iter(re.sub(r"(?<!\\)((?:\\\\)*)\\\n", r"\1", text).split("\n"))
        for line in lines:
            self._line(troff.without_comment(line), lines)
        self._flush()

    def _line(self, line: str, rest: Iterator[str]) -> None:
        found = REQUEST.fullmatch(line) if line[:1] in (".", "'") else None
        if found is None:
            self._text(line)
            return
        name, argument = found.groups()
        if name in ENDS:
            _skip(rest, ENDS[name])
        elif name in ("if", "ie", "el", "while"):
            self._condition(name, argument, rest)
        elif name == "TS":
            self._flush()
            tbl.add(self.composer, rest, lambda cell: troff.plain(cell, self._strings))
        elif name in ("ds", "ds1"):
            word, _, value = argument.partition(" ")
            self._strings[word[:40]] = troff.plain(value.strip().removeprefix('"'), self._strings)[:1000]
        elif name:
            self._macro(name, argument)

    def _condition(self, name: str, line: str, rest: Iterator[str]) -> None:
        """Follows what holds where a terminal is written to: `n`; the rest of conditions is taken as false."""
        test, _, then = line.partition(" ")
        holds = name != "el" and test in ("n", "!t")
        body = (line if name == "el" else then).strip()
        if not body.startswith("\\{"):
            if holds and body:
                self._line(body, rest)
            return
        depth, line = 0, body
        while True:
            depth += line.count("\\{") - line.count("\\}")
            inner = line.replace("\\{", "").replace("\\}", "").strip()
            if holds and inner and inner not in (".", "'"):
                self._line(inner, rest)
            if depth <= 0 or (following := next(rest, None)) is None:
                return
            line = following

    def _macro(self, name: str, line: str) -> None:
        if mdoc.is_macro(name):
            self._of_mdoc(name, words(line))
            return
        arguments = [troff.plain(word, self._strings) for word in words(line)]
        match name:
            case "TH":
                self.title = f"{arguments[0]}({arguments[1]})" if len(arguments) > 1 else " ".join(arguments)
            case "SH" | "SS":
                self._flush()
                self._literal, self._follows = False, False
                self._awaits = name
                self._text(" ".join(arguments)) if arguments else None
            case "TP" | "TQ":
                self._flush()
                self._awaits = "tag"
            case "IP":
                self._flush()
                self._tag(arguments[0] if arguments else "")
            case "PP" | "LP" | "P" | "HP" | "sp" | "RS" | "RE" | "YS":
                is_tag = name == "RS" and bool(arguments) and "\n" not in "".join(self._words).strip()
                self._flush()
                self._depth = max(1, self._depth + (name == "RS") - (name == "RE"))
                if name not in ("RS", "sp"):
                    self.composer.after_entries(self._depth + (name == "RE"))
                self._follows = (self._follows and name in ("RS", "sp")) or is_tag
            case "nf" | "EX" | "fi" | "EE":
                self._flush()
                self._literal = name in ("nf", "EX")
            case "br":
                self._words.append("\n")
            case "SY":
                self._flush()
                self._text(" ".join(arguments))
            case "OP":
                self._text(f"[{' '.join(arguments)}]")
            case "UR" | "MT":
                self._link = arguments[0] if arguments else ""
            case "UE" | "ME":
                self._text(self._link + "".join(arguments))
                self._link = ""
            case "so":
                self.link = line
            case _ if name in ALTERNATING:
                self._text("".join(arguments))
            case _ if name in FONTS and arguments:
                self._text(" ".join(arguments))

    def _of_mdoc(self, name: str, raw: list[str]) -> None:
        plain = [troff.plain(word, self._strings) for word in raw]
        match name:
            case "Dt":
                self.title = f"{plain[0]}({plain[1]})" if len(plain) > 1 else " ".join(plain)
            case "Sh" | "Ss":
                self._flush()
                self._literal, self._follows, self._awaits = False, False, name.upper()
                self._text(self._mdoc.line("No", plain))
            case "It":
                self._flush()
                self._tag(self._mdoc.item(plain))
            case "Bl":
                self._flush()
                self._mdoc.begin(plain)
                self._depth += 1
            case "El":
                self._flush()
                self._mdoc.end()
                self.composer.after_entries(self._depth)
                self._depth = max(1, self._depth - 1)
                self._follows = False
            case "Pp" | "Lp" | "Ed" | "Rs" | "Re":
                self._flush()
                self._literal, self._follows = False, False
            case "Bd":
                self._flush()
                self._literal = "-literal" in plain or "-unfilled" in plain
            case "Dd" | "Os" | "Bk" | "Ek":
                pass
            case _:
                line = self._mdoc.line(name, plain)
                is_own = name in OWN_LINE or (name == "Nm" and self._section == "SYNOPSIS")
                self._text(f"\n{line}{' ' if name == 'Nm' else chr(10)}" if is_own else line)

    def _text(self, line: str) -> None:
        text = troff.plain(line, self._strings) if "\\" in line else line
        if self._awaits and text.strip():
            awaited, self._awaits = self._awaits, ""
            if awaited == "tag":
                self._tag(text)
            else:
                self._section = one_line(text).upper()
                self.composer.heading(one_line(text), 1 if awaited == "SH" else 2)
        elif self._literal:
            self._words.append(text if text.endswith("\n") else f"{text}\n")
        elif not text.strip():
            self._flush()
        elif self._words and text[0] in ".,;:)" and text[1:2] in ("", " "):
            self._words[-1] = self._words[-1].rstrip() + text
        else:
            self._words.append(text if text[:1] == "\n" else f"{text} ")

    def _tag(self, tag: str) -> None:
        words = one_line(tag)
        if words in BULLETS or re.fullmatch(r"\(?\d{1,3}[.)]?", words):
            self._lead = "- " if words in BULLETS else f"{words} "
        elif words:
            self.composer.entry(words, self._depth)
            self._follows = True

    def _flush(self) -> None:
        joined = "".join(self._words)
        self._words = []
        lines = joined.rstrip().split("\n") if self._literal else map(one_line, joined.split("\n"))
        text = "\n".join(line for line in lines if self._literal or line).strip("\n")
        if text.strip():
            self.composer.block(self._lead + text, close=self._follows)
            self._lead, self._follows = "", False


def words(line: str) -> list[str]:
    """A request's arguments: blanks part them, quotes keep blanks."""
    return [(quoted or bare).replace('""', '"') for quoted, bare in WORD.findall(line)]


def _skip(rest: Iterator[str], end: str) -> None:
    for line in rest:
        if line.rstrip() == end:
            return
