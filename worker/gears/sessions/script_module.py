"""`from shardqa.gears import GB, execute` in a script: the very objects that the script finds as globals.

The module gives the names of the session whose script runs now.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

NAME = "shardqa.gears"
HIDDEN = ("__name__", "__builtins__")  # of a script's globals; no names to import

_names: ContextVar[Mapping[str, Any] | None] = ContextVar("names", default=None)


def of_script() -> Mapping[str, Any] | None:
    """Returns the names of the session whose code runs in this task or thread; None for none."""
    return _names.get()


@contextmanager
def in_use(names: Mapping[str, Any]) -> Iterator[None]:
    token = _names.set(names)
    try:
        yield
    finally:
        _names.reset(token)


class ScriptModule(ModuleType):
    """The module `shardqa.gears`. Raises ImportError where no script runs: its functions bind names when it does."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        names = of_script()
        if names is None:
            raise ImportError(f"{NAME} is there while a script runs: import {name} at its top, not inside a function")
        if name == "__all__":
            return [known for known in names if known not in HIDDEN]
        if name not in names:
            raise AttributeError(f"{NAME} has no {name!r} in the worker; it has {', '.join(sorted(names))}")
        return names[name]


def install() -> None:
    """Installs the module, once per worker process."""
    module = ScriptModule(NAME, __doc__)
    sys.modules[NAME] = module
    package, _, name = NAME.rpartition(".")
    setattr(sys.modules[package], name, module)
