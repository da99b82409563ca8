"""The arguments of RG.PYEXECUTE."""

from collections.abc import Iterator
from dataclasses import dataclass, field

BESIDE = "@"  # in the id of a session that a function registered: stands behind that of the function's session


class BadArguments(Exception):
    """The arguments of a command do not follow its syntax."""


@dataclass(slots=True)
class Script:
    """RG.PYEXECUTE code [UNBLOCKING] [ID id] [DESCRIPTION text] [UPGRADE] [REPLACE_WITH id] [REQUIREMENTS …]"""

    code: str
    id: str | None = None
    description: str | None = None
    upgrade: bool = False
    replace: str | None = None
    unblocking: bool = False
    requirements: list[str] = field(default_factory=list)
    reinstall: bool = False


def parse_script(arguments: list[bytes]) -> Script:
    """Parses the arguments. Raises BadArguments."""
    if not arguments:
        raise BadArguments("wrong number of arguments for 'RG.PYEXECUTE' command")
    try:
        words = [argument.decode() for argument in arguments]
    except UnicodeDecodeError as error:
        raise BadArguments(f"the script is not UTF-8 text: {error}") from None
    script = Script(words[0])
    rest = iter(words[1:])
    for word in rest:
        match word.upper():
            case "ID":
                script.id = _value(word, rest)
                if BESIDE in script.id:
                    raise BadArguments(f"ID {script.id[:80]!r} must be compose of what is not {BESIDE!r}, the worker's")
            case "DESCRIPTION":
                script.description = _value(word, rest)
            case "REPLACE_WITH":
                script.replace = _value(word, rest)
            case "UPGRADE":
                script.upgrade = True
            case "UNBLOCKING":
                script.unblocking = True
            case "FORCE_REINSTALL_REQUIREMENTS":
                script.reinstall = True
            case "REQUIREMENTS":
                script.requirements = list(rest)  # all that follow
            case _:
                raise BadArguments(f"Unknown arguments were given: {word[:80]!r} is none of RG.PYEXECUTE")
    return script


def _value(word: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if not value:
        raise BadArguments(f"{word} is missing: the word needs a value behind it")
    return value
