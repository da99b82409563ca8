"""The globals of a script of RG.PYEXECUTE, to be imported by scripts and by their tests; typed in __init__.pyi.

In the worker another module stands in this one's place (script_module.py of the worker). Here GB only
records what it is told, and `shardqa.gears.local` runs that; the other names work in functions that it runs.
"""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = [
    "GB",
    "GearsBuilder",
    "atomic",
    "call_next",
    "configGet",
    "createFuture",
    "execute",
    "flatError",
    "flat_error",
    "gearsConfigGet",
    "gearsCtx",
    "gearsFuture",
    "getGearsSession",
    "get_command",
    "hashtag",
    "isAsyncAllow",
    "isInAtomicBlock",
    "log",
    "override_reply",
    "registerTE",
    "runCoroutine",
    "runtime",
    "setFutureException",
    "setFutureResults",
    "setGearsSession",
    "shardReaderCallback",
]
BUILDERS = ("GB", "GearsBuilder")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'shardqa.gears' has no attribute {name!r}")
    names = _names()
    if names is not None:  # a script that the local runner runs
        return names[name]
    if name == "runtime":
        return _Runtime()
    return _builder if name in BUILDERS else _later(name)


def _names() -> Mapping[str, Any] | None:
    from shardqa.worker.gears.sessions import script_module

    return script_module.of_script()


def _now(name: str) -> Any:
    names = _names()
    if names is None:
        raise RuntimeError(
            f"{name} works where a function runs: in Redis ('shardqa gears run script.py'), or in a test by "
            "shardqa.gears.local"
        )
    return names[name]


def _later(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return _now(name)(*arguments, **options)

    call.__name__ = call.__qualname__ = name
    return call


class _Runtime:
    def __getattr__(self, name: str) -> Any:
        return getattr(_now("runtime"), name)


class _Nowhere:
    """The session of a builder that no script made: it only collects steps."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(
            "outside Redis a builder only collects steps: send the script by 'shardqa gears run script.py', or give "
            "the builder without its run() to shardqa.gears.local.run"
        )


def _builder(*arguments: Any, **options: Any) -> Any:
    names = _names()
    if names is not None:
        return names["GB"](*arguments, **options)
    from shardqa.worker.gears.sessions.builder import Builder

    return Builder(_Nowhere(), *arguments, **options)  # type: ignore[arg-type]
