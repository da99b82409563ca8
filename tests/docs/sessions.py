"""Sessions in Markdown: which run, what they print, and whether it is what stands there. No servers, no processes.

A block fenced as `console` runs: lines with `$ ` and, below them, `> ` are typed, all others are what the command
prints. `…` stands for any text (times and sizes are written so), a line of `…` alone for any lines; a number with a
point, such as a score, may differ by NEAR. A block of `python` runs where
`<!-- runs -->` stands above it; it prints what the comments of its `print` lines say.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^<!-- runs -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
NUMBER = re.compile(r"\d+\.\d+")
NEAR = 0.15  # a score is another once the passages have vectors, too


@dataclass
class Command:
    typed: str
    prints: list[str] = field(default_factory=list)


def console(text: str) -> list[Command]:
    """The commands of a document in their order."""
    commands = list[Command]()
    for block in CONSOLE.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append(Command(line[2:]))
            elif (line.startswith("> ") or line == ">") and not commands[-1].prints:
                commands[-1].typed += "\n" + line[2:]
            else:
                commands[-1].prints.append(line)
    return commands


def programs(path: Path) -> list[tuple[str, list[str]]]:
    """(source, lines it prints) of a document's Python."""
    return [(code, PRINTS.findall(code)) for code in PYTHON.findall(path.read_text())]


def fits(expected: list[str], printed: str) -> bool:
    pattern = ""
    for line in expected:
        if line == "…":
            pattern += r"(?:.*\n)*"
            continue
        parts = (r"(\d+\.\d+)".join(map(re.escape, NUMBER.split(part))) for part in line.rstrip().split("…"))
        pattern += ".*".join(parts) + r" *\n"
    found = re.fullmatch(pattern, printed)
    wanted = [number for line in expected for number in NUMBER.findall(line)]
    return found is not None and all(
        abs(float(a) - float(b)) <= NEAR for a, b in zip(found.groups(), wanted, strict=True)
    )
