"""RG.CONFIGGET and RG.CONFIGSET: RedisGears' settings, and a dictionary of the user's own.

They live as long as the worker does, as RedisGears' did in memory; the module's arguments are readable here too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from shardqa.worker import resp

SAVED = b"+OK - value was saved in extra config dictionary\r\n"


@dataclass(frozen=True, slots=True)
class Setting:
    # None: an argument of the module, whose default stands in its table (arguments.h)
    value: int | str | None
    least: int | None = None  # of a number that may change at run time; None: it may not change


KNOWN = {
    "MaxExecutions": Setting(None, 1),
    "MaxExecutionsPerRegistration": Setting(None, 1),
    "ProfileExecutions": Setting(None, 0),
    "PythonAttemptTraceback": Setting(1, 0),
    "OverridePythonAllocators": Setting(0),  # the worker is a process of its own: there is nothing to override
    "DownloadDeps": Setting(0),  # of RedisGears' own Python, which is not used here
    "DependenciesUrl": Setting(""),
    "DependenciesSha256": Setting(""),
    "PythonInstallationDir": Setting(""),
    "CreateVenv": Setting(0),
    "ExecutionThreads": Setting(3),
    "ExecutionMaxIdleTime": Setting(None, 1),  # milliseconds
    "PythonInstallReqMaxIdleTime": Setting(30000, 1),  # milliseconds
    "SendMsgRetries": Setting(3, 0),
}
IDLE = 5000  # milliseconds, RedisGears' default
NAMES = {name.lower(): name for name in KNOWN}


class WorkerSettings:
    def __init__(self, arguments: Mapping[str, str]) -> None:
        self._arguments = arguments  # of the module, names in lower case
        self._values: dict[str, int | str] = {
            name: int(arguments[name.lower()]) if setting.value is None else setting.value
            for name, setting in KNOWN.items()
        }
        self._extra: dict[str, str] = {}

    def number(self, name: str) -> int:
        return int(self._values[name])

    def idle(self) -> float:
        """Returns the seconds without progress that end an execution; infinite at RedisGears' default."""
        return math.inf if (milliseconds := self.number("ExecutionMaxIdleTime")) == IDLE else milliseconds / 1000

    def get(self, name: str) -> int | str | None:
        """Returns a setting (case does not count in its name) or a value of the user's dictionary (it does)."""
        setting = NAMES.get(name.lower())
        if setting is not None:
            return self._values[setting]
        if name in self._extra:
            return self._extra[name]
        return self._arguments.get(name.lower())

    def set(self, name: str, value: str) -> bytes:
        """Sets one value; returns the reply for it."""
        setting = NAMES.get(name.lower())
        if setting is None:
            self._extra[name] = value
            return SAVED
        least = KNOWN[setting].least
        if least is None:
            return resp.error(f"ERR (error) {setting} can not be changed at run time")
        try:
            number = int(value)
        except ValueError:
            return resp.error(f"ERR {setting} wants a number, not {value[:40]!r}")
        if number < least:
            return resp.error(f"ERR {setting} wants a number from {least} on, not {number}")
        self._values[setting] = number
        return resp.OK
