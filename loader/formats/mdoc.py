"""Lines of -mdoc, whose words are macros themselves: `.Op Fl a Ar file` is `[-a file]`."""

import re

BLOCKS = frozenset(re.findall(r"\S+", "Dd Dt Os Sh Ss It Bl El Bd Ed Pp Lp Bk Ek D1 Dl Nd Rs Re"))
ENCLOSED = {"Op": "[]", "Bq": "[]", "Pq": "()", "Aq": "<>", "Brq": "{}", "Sq": "‘’", "Ql": "‘’", "Dq": "“”", "Qq": '""'}
OPENED = {"Oo": "[", "Bo": "[", "Po": "(", "Ao": "<", "Bro": "{", "So": "‘", "Do": "“", "Qo": '"'}
CLOSED = {"Oc": "]", "Bc": "]", "Pc": ")", "Ac": ">", "Brc": "}", "Sc": "’", "Dc": "”", "Qc": '"'}
SYSTEMS = {"Bx": "BSD", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Ux": "UNIX", "At": "AT&T"}
PLAIN = frozenset(
    re.findall(
        r"\S+",
        "Nm Fl Ar Xr Pa Ev Em Sy Li Cm Ic Va Vt Ft Fa Fn Fo Fc Dv Er An Lk Mt Cd In Tn Ad Ms No Ns Pf St Bf Ef Sm Xo "
        "Xc Ap Eo Ec Es En Fd Lb Ex Rv %A %B %C %D %I %J %N %O %P %Q %R %T %U %V",
    )
)
CALLED = frozenset({*PLAIN, *ENCLOSED, *OPENED, *CLOSED, *SYSTEMS})
MARKS = frozenset(".,:;)]?!")
MAX_LISTS = 50


def is_macro(name: str) -> bool:
    return name in BLOCKS or name in CALLED


class MdocLines:
    """State of one page that its lines need: its name, its lists."""

    def __init__(self) -> None:
        self._name = ""
        self._lists: list[str] = []

    def begin(self, arguments: list[str]) -> None:
        kind = next((word for word in arguments if word.startswith("-")), "")
        self._lists = [*self._lists[-MAX_LISTS:], kind]

    def end(self) -> None:
        self._lists = self._lists[:-1]

    def item(self, arguments: list[str]) -> str:
        """The tag of a list's item; a bullet where the list has none."""
        kind = self._lists[-1] if self._lists else ""
        if kind == "-column":
            cells = " ".join(arguments).replace(" Ta ", " | ").replace("\t", " | ")
            return self.line("No", cells.split(" "))
        return self.line("No", arguments) if arguments else "•"

    def line(self, name: str, arguments: list[str]) -> str:
        """The words of one line."""
        if name == "Nd":
            return f"— {self.line('No', arguments)}"
        pieces = _Pieces()
        ends: list[str] = []  # brackets that close where the line ends
        words = [name, *arguments] if name in CALLED else arguments
        macro = at = 0
        macro_name = "No"
        for at, word in enumerate(words):
            if word in CALLED and (at == 0 or len(word) > 1):
                macro_name, macro = word, at
                self._begin(word, words[at + 1 : at + 2], pieces, ends)
            elif word in MARKS:
                pieces.add(word, joined=True)
            else:
                self._word(macro_name, word, at - macro, pieces)
        tail = ""
        while pieces.texts and ends and pieces.texts[-1].strip() in MARKS:
            tail = pieces.texts.pop().strip() + tail
        for end in reversed(ends):
            pieces.add(end, joined=True)
        return "".join([*pieces.texts, tail]).strip()

    def _begin(self, macro: str, following: list[str], pieces: "_Pieces", ends: list[str]) -> None:
        is_alone = not following or following[0] in CALLED or following[0] in MARKS
        if macro in ENCLOSED:
            pieces.add(ENCLOSED[macro][0])
            pieces.joins = True
            ends.append(ENCLOSED[macro][1])
        elif macro in OPENED:
            pieces.add(OPENED[macro])
            pieces.joins = True
        elif macro in CLOSED:
            pieces.add(CLOSED[macro], joined=True)
        elif macro in SYSTEMS:
            pieces.add(SYSTEMS[macro])
        elif macro in ("Ns", "Ap"):
            pieces.joins = True
            if macro == "Ap":
                pieces.add("'")
                pieces.joins = True
        elif macro == "Nm" and is_alone:
            pieces.add(self._name)
        elif macro == "Ar" and is_alone:
            pieces.add("file ...")
        elif macro == "Fl" and is_alone:
            pieces.add("-")
            pieces.joins = bool(following) and following[0] in CALLED

    def _word(self, macro: str, word: str, number: int, pieces: "_Pieces") -> None:
        match macro:
            case "Fl":
                pieces.add(f"-{word}" if word != "|" else word)
            case "Nm":
                self._name = self._name or word
                pieces.add(word)
            case "Xr" if number == 2:
                pieces.add(f"({word})", joined=True)
            case "Fn" if number == 1:
                pieces.add(f"{word}()")
            case "In":
                pieces.add(f"<{word}>")
            case "Pf" if number == 1:
                pieces.add(word)
                pieces.joins = True
            case _:
                pieces.add(word)


class _Pieces:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.joins = False  # no blank before the next piece

    def add(self, piece: str, joined: bool = False) -> None:
        if not piece:
            return
        is_first = not self.texts or self.joins or joined
        self.texts.append(piece if is_first else f" {piece}")
        self.joins = False
