"""Faults a user can cause, one class each.

Every class has a `code` (stable, machine readable), an HTTP `status` for the API, and a message that
names the value met, the value wanted and the remedy. A remedy that differs by caller is the caller's: of HTTP it is in
shardqa.api.problems, of the command line in shardqa.cli. Impossible states assert instead.
"""

from typing import Any, ClassVar


class ShardqaError(Exception):
    """The base of all faults that a user can cause. `str(error)` is a sentence for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    problem: dict[str, Any] | None = None  # the reply that told it, where it came from the HTTP API


class BadCorpusName(ShardqaError):
    code = "bad_corpus_name"
    status = 422


class UnknownCorpus(ShardqaError):
    code = "unknown_corpus"
    status = 404


class SeveralCorpora(ShardqaError):
    """A question that names no corpus where its asker has more than one."""

    code = "several_corpora"
    status = 422


class BadDocumentId(ShardqaError):
    code = "bad_document_id"
    status = 422


class UnknownDocument(ShardqaError):
    code = "unknown_document"
    status = 404


class UnknownTask(ShardqaError):
    code = "unknown_task"
    status = 404


class BadWords(ShardqaError):
    """Synonyms of a corpus that name no two words."""

    code = "bad_words"
    status = 422


class NoFile(ShardqaError):
    code = "no_file"
    status = 404


class DocumentTooLarge(ShardqaError):
    code = "document_too_large"
    status = 413


class BadDocument(ShardqaError):
    """An empty, binary or undecodable text, or a file format that can't be read."""

    code = "bad_document"
    status = 422


class IdTaken(ShardqaError):
    """A file's document would replace one of the same id that came from elsewhere and says something else."""

    code = "id_taken"
    status = 409


class CorpusDropping(ShardqaError):
    """A document for a corpus whose dropped documents are still being removed."""

    code = "corpus_dropping"
    status = 409


class BadCursor(ShardqaError):
    """A cursor that does not come from a list of documents."""

    code = "bad_cursor"
    status = 422


class BadFilter(ShardqaError):
    """A filter that is malformed, or whose bound is neither number nor date."""

    code = "bad_filter"
    status = 422


class FileTooSlow(ShardqaError):
    """A file whose reading passes its deadline."""

    code = "file_too_slow"
    status = 422


class UnknownKey(ShardqaError):
    code = "unknown_key"
    status = 404


class EmptyQuestion(ShardqaError):
    code = "empty_question"
    status = 422


class BadQuestion(ShardqaError):
    """A question that is no Unicode text."""

    code = "bad_question"
    status = 422


class QuestionTooLong(ShardqaError):
    code = "question_too_long"
    status = 422


class BadKey(ShardqaError):
    """A Redis key that is not of the form its type word promises."""

    code = "bad_key"
    status = 422


class BadLimit(ShardqaError):
    """A number such as k or n_best is outside its range."""

    code = "bad_limit"
    status = 422


class TooManyRequests(ShardqaError):
    code = "too_many_requests"
    status = 429


class ClusterUnavailable(ShardqaError):
    """No shard could be reached, or none has the functions or the model it needs."""

    code = "cluster_unavailable"
    status = 503


class UserRefused(ClusterUnavailable):
    """The Redis user has another password, or lacks a right."""

    code = "user_refused"


class WritesRefused(ClusterUnavailable):
    """Redis stores nothing: memory is full, replicas are missing, the disk fails."""

    code = "writes_refused"


class WrongShard(ClusterUnavailable):
    """A shard is asked for an answer of another one: the slot of that one's tag has moved, or is moving."""

    code = "wrong_shard"


class Indexing(ClusterUnavailable):
    """A shard is reading its passages into its index: after its worker's start, or after events were lost."""

    code = "indexing"


class NoEncoder(ClusterUnavailable):
    """A question's vector is wanted of a shard that has no encoder."""

    code = "no_encoder"


class ShardFailed(ShardqaError):
    """A shard answered with an error."""

    code = "shard_failed"
    status = 502


class AnswerTimeout(ShardqaError):
    code = "timeout"
    status = 504


class BadModel(ShardqaError):
    """A model folder or file that is missing, truncated or not what its card says."""

    code = "bad_model"
    status = 422


class BadData(ShardqaError):
    """A question file or corpus file whose content breaks its format; names file and place."""

    code = "bad_data"
    status = 422


class BadBackup(ShardqaError):
    """A backup file that can't be written or read, is damaged, or does not fit where it is to go."""

    code = "bad_backup"
    status = 422


class SetupError(ShardqaError):
    """Something this machine lacks (redis-server, a free port, a built module) or has in another version."""

    code = "setup"
    status = 500
