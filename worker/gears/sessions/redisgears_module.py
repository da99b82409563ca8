"""`import redisgears`: the names of RedisGears' own module, for scripts and for the packages that they require.

A script's globals belong to its session. These belong to the worker and act for the function that runs, so a package
may import them when it is imported, and pickles name them by reference.
"""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from shardqa.worker.calls import Argument
from shardqa.worker.gears.pipeline.function_threads import current_or_begun_by
from shardqa.worker.gears.pipeline.inner_commands import InnerCommands
from shardqa.worker.gears.pipeline.readers import text
from shardqa.worker.gears.sessions import script_functions, script_module
from shardqa.worker.gears.sessions.script_functions import OUTSIDE, REDISGEARS, ScriptHost

NAME = "redisgears"


def install(host: ScriptHost, commands: InnerCommands) -> None:
    """Installs the module, once a process; `__main__` has a script's names, too, as in RedisGears' interpreter."""
    module = ModuleType(NAME, "RedisGears' functions, for scripts and the packages that they require.")
    sys.modules[NAME] = module
    common = script_functions.common(host)
    names = _names(host, commands, common)
    for name, value in names.items():
        _place(value, name)
        setattr(module, name, value)
    own = {"execute": "executeCommand", "atomic": "atomicCtx", "registerTE": "registerTimeEvent"}
    same = {name: names[own.get(name, name)] for name in ("GearsBuilder", "GB", "gearsCtx", *own)}
    for name, value in {**script_functions.old_names(common), **common, **same}.items():
        setattr(sys.modules["__main__"], name, value)


def _place(value: Any, name: str) -> None:
    """Tells pickle that a function made here lies in this module; others lie where they are defined."""
    if "<locals>" in getattr(value, "__qualname__", ""):
        value.__module__, value.__name__, value.__qualname__ = NAME, name, name


def _names(host: ScriptHost, commands: InnerCommands, common: Mapping[str, Any]) -> dict[str, Any]:
    def execute_command(*command: Argument) -> Any:
        """Sends one Redis command with the rights of the function that runs. Raises redis.ResponseError."""
        run = current_or_begun_by()
        if run is None:
            raise RuntimeError(OUTSIDE)
        return text(commands.execute(run.rights, command))

    def of_script(name: str) -> Any:
        names = script_module.of_script()
        if names is None:
            raise RuntimeError(f"{name} belongs to a script: call it at the script's top, or pass it to the package")
        return names[name]

    def gears_builder(*arguments: Any, **options: Any) -> Any:
        return of_script("GearsBuilder")(*arguments, **options)

    def register_time_event(seconds: float, callback: Any, key: str | None = None) -> None:
        of_script("registerTE")(seconds, callback, key)

    def atomic_ctx() -> script_functions.Atomic:
        return script_functions.Atomic(host.calls)

    def my_hash_tag() -> str:
        return host.cluster.hashtag()

    of_module = {
        "execute": execute_command,
        "GB": gears_builder,
        "gearsCtx": script_functions.context_of(gears_builder),
        "atomic": atomic_ctx,
        "registerTE": register_time_event,
        "hashtag": my_hash_tag,
    }
    return {name: {**common, **of_module}[same] for name, same in REDISGEARS.items()}
