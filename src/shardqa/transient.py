"""Transient errors: those of Redis that end by themselves, and the faults they become. The one list of them."""

from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)

from shardqa.errors import AnswerTimeout, ClusterUnavailable, ShardqaError, TooManyRequests

BETWEEN_SHARDS = ("TRYAGAIN", "MOVED", "ASK")  # of a key whose slot is not all here
WRITE_REFUSALS = {"OOM": "memory is full", "NOREPLICAS": "replicas are missing", "MISCONF": "its disk fails"}
CODES = (*BETWEEN_SHARDS, *WRITE_REFUSALS, "READONLY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "UNBLOCKED")
NOT_SERVED = "not served by this shard"  # of TRYAGAIN, see module/src/core/call.c
CLUSTER_DOWN = "while the cluster is down"  # how Redis refuses a module's call in the first seconds of a cluster node
# The same where redis-py takes the code off the text and makes a class of it; MovedError is an AskError.
CLASSES = (ConnectionError, OSError, AskError, TryAgainError, ClusterDownError, MasterDownError, ReadOnlyError)


def is_transient(error: BaseException) -> bool:
    """Whether Redis may do later what it refused now."""
    text = str(error)
    return isinstance(error, CLASSES) or text.startswith(CODES) or CLUSTER_DOWN in text


def may_tell_of_a_failover(error: BaseException) -> bool:
    """Whether the node may no longer be the master of what it was asked: a trigger has no key, so no MOVED tells."""
    by_role = TryAgainError | ReadOnlyError | ClusterDownError | MasterDownError
    return isinstance(error, by_role) or str(error).startswith(("TRYAGAIN", "UNBLOCKED"))


def may_have_a_new_master(error: BaseException) -> bool:
    """Whether a replica may have taken over from the node, rather than that it is busy or its worker starts."""
    text = str(error)
    return isinstance(error, ReadOnlyError) or text.startswith("UNBLOCKED") or NOT_SERVED in text


def is_between_shards(error: BaseException) -> bool:
    """Whether the key's slot is on its way here or away."""
    return str(error).startswith(BETWEEN_SHARDS)


def write_refusal(error: object) -> str | None:
    """Says why Redis stores nothing, or None. redis-py takes the code off where it makes a class of it."""
    text = str(error)
    code = "OOM" if isinstance(error, OutOfMemoryError) else text.partition(" ")[0]
    return f"{WRITE_REFUSALS[code]} ({code} {text.removeprefix(code).strip()})" if code in WRITE_REFUSALS else None


def is_write_refusal(reply: object) -> bool:
    """Whether a reply is an error that says that nothing is stored."""
    return isinstance(reply, ResponseError) and write_refusal(reply) is not None


def is_transient_fault(fault: ShardqaError) -> bool:
    """Whether the same request may succeed later. A refused user or a missing module does not mend itself."""
    if isinstance(fault, TooManyRequests | AnswerTimeout):
        return True
    cause = fault.__cause__
    is_lasting = isinstance(cause, AuthenticationError | NoPermissionError) or "nknown command" in str(cause)
    return isinstance(fault, ClusterUnavailable) and not is_lasting
