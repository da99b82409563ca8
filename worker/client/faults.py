"""Faults of AI.* commands, a class each. The text is the server's."""

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    TimeoutError,
    TryAgainError,
)


class AiFault(Exception):
    """The base of the faults below."""


class NoSuchTensor(AiFault):
    """The key has no tensor."""


class NoSuchModel(AiFault):
    """The key has no model."""


class NoSuchScript(AiFault):
    """The key has no script."""


class WrongKind(AiFault):
    """The key holds something else."""


class BadCall(AiFault):
    """Arguments that the command does not take."""


class ModelRefused(AiFault):
    """A file or source that can't be loaded."""


class BackendUnavailable(AiFault):
    """The shard's worker lacks the library, or the device."""


class RunFailed(AiFault):
    """A model, script or graph that ended with an error. `results`: of a graph, what each operation gave."""

    results: list[object] | None = None


class RunTimedOut(AiFault):
    """The run's own deadline passed, or the server's, or the connection's."""


class ShardBusy(AiFault):
    """The queue there is full; try again later."""


class ShardAway(AiFault):
    """The node, or its worker, is not there now; try again later."""


class NotPermitted(AiFault):
    """The user may not do that."""


class MemoryIsFull(AiFault):
    """The server has no room for it."""


class ModuleMissing(AiFault):
    """The server does not know AI.*: the module is not loaded there."""


CLASSES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[AiFault]], ...] = (
    (TimeoutError, RunTimedOut),  # before ConnectionError, as some of its classes are both
    ((NoPermissionError, AuthenticationError), NotPermitted),
    (OutOfMemoryError, MemoryIsFull),
    ((ConnectionError, TryAgainError, ClusterDownError, MasterDownError, BusyLoadingError, OSError), ShardAway),
)
TEXTS = (  # of errors that redis-py has no class for
    ("WRONGTYPE", WrongKind),
    ("NOPERM", NotPermitted),
    ("OOM", MemoryIsFull),
    ("BUSY", ShardBusy),
    ("TIMEOUT", RunTimedOut),
    ("TRYAGAIN", ShardAway),
    ("unknown command", ModuleMissing),
    ("tensor key is empty", NoSuchTensor),
    ("model key is empty", NoSuchModel),
    ("cannot find run info for key", NoSuchModel),
    ("script key is empty", NoSuchScript),
    ("Could not load backend", BackendUnavailable),
    ("unsupported backend", BackendUnavailable),
)
UNAVAILABLE = "is not available to this worker"  # of a device


def explained(error: BaseException, otherwise: type[AiFault]) -> AiFault:
    """An error of redis-py as one of ours; `otherwise` where nothing tells what it is."""
    text = str(error)
    for classes, fault in CLASSES:
        if isinstance(error, classes):
            return fault(text)
    plain = text.removeprefix("ERR ")
    for start, fault in TEXTS:
        if plain.startswith(start):
            return fault(text)
    return BackendUnavailable(text) if UNAVAILABLE in text else otherwise(text)
