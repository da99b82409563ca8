"""Faults a user can cause, one class each.

Every class has a `code` (stable, machine readable: its name, `BadFilter` as `bad_filter`), an HTTP `status` for the
API, and a message that names the value met, the value wanted and the remedy. A remedy that differs by caller is the
caller's: of HTTP it is in shardqa.api.problems, of the command line in shardqa.cli. Impossible states assert instead.
"""

import re
from typing import Any, ClassVar


class ShardqaError(Exception):
    """The base of all faults that a user can cause. `str(error)` is a sentence for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    problem: dict[str, Any] | None = None  # the reply that told it, where it came from the HTTP API

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


class BadCorpusName(ShardqaError):
    status = 422


class UnknownCorpus(ShardqaError):
    status = 404


class SeveralCorpora(ShardqaError):
    """A question that names no corpus where its asker has more than one."""

    status = 422


class BadDocumentId(ShardqaError):
    status = 422


class UnknownDocument(ShardqaError):
    status = 404


class UnknownTask(ShardqaError):
    status = 404


class BadWords(ShardqaError):
    """Synonyms of a corpus that name no two words."""

    status = 422


class NoFile(ShardqaError):
    status = 404


class DocumentTooLarge(ShardqaError):
    status = 413


class BadDocument(ShardqaError):
    """An empty, binary or undecodable text, or a file format that can't be read."""

    status = 422


class IdTaken(ShardqaError):
    """A file's document would replace one of the same id that came from elsewhere and says something else."""

    status = 409


class CorpusDropping(ShardqaError):
    """A document for a corpus whose dropped documents are still being removed."""

    status = 409


class BadCursor(ShardqaError):
    """A cursor that does not come from a list of documents."""

    status = 422


class BadFilter(ShardqaError):
    """A filter that is malformed, or whose bound is neither number nor date."""

    status = 422


class FileTooSlow(ShardqaError):
    """A file whose reading passes its deadline."""

    status = 422


class UnknownKey(ShardqaError):
    status = 404


class EmptyQuestion(ShardqaError):
    status = 422


class BadQuestion(ShardqaError):
    """A question that is no Unicode text."""

    status = 422


class QuestionTooLong(ShardqaError):
    status = 422


class BadKey(ShardqaError):
    """A Redis key that is not of the form its type word promises."""

    status = 422


class BadLimit(ShardqaError):
    """A number such as k or n_best is outside its range."""

    status = 422


class TooManyRequests(ShardqaError):
    status = 429


class ClusterUnavailable(ShardqaError):
    """No shard could be reached, or none has the functions or the model it needs."""

    status = 503


class UserRefused(ClusterUnavailable):
    """The Redis user has another password, or lacks a right."""


class WritesRefused(ClusterUnavailable):
    """Redis stores nothing: memory is full, replicas are missing, the disk fails."""


class WrongShard(ClusterUnavailable):
    """A shard is asked for an answer of another one: the slot of that one's tag has moved, or is moving."""


class Indexing(ClusterUnavailable):
    """A shard is reading its passages into its index: after its worker's start, or after events were lost."""


class NoEncoder(ClusterUnavailable):
    """A question's vector is wanted of a shard that has no encoder."""


class ShardFailed(ShardqaError):
    """A shard answered with an error."""

    status = 502


class AnswerTimeout(ShardqaError):
    code = "timeout"
    status = 504


class BadModel(ShardqaError):
    """A model folder or file that is missing, truncated or not what its card says."""

    status = 422


class BadData(ShardqaError):
    """A question file or corpus file whose content breaks its format; names file and place."""

    status = 422


class BadBackup(ShardqaError):
    """A backup file that can't be written or read, is damaged, or does not fit where it is to go."""

    status = 422


class SetupError(ShardqaError):
    """Something this machine lacks (redis-server, a free port, a built module) or has in another version."""

    code = "setup"
    status = 500
