"""Faults of an HTTP request itself; faults of questions, documents and the cluster are in shardqa.errors."""

from shardqa.errors import ShardqaError


class NoSuchRoute(ShardqaError):
    status = 404


class MethodNotAllowed(ShardqaError):
    status = 405


class BadHttp(ShardqaError):
    """The bytes are no HTTP, or HTTP that this server does not take."""

    status = 400


class UrlTooLong(ShardqaError):
    status = 414


class HeadTooLarge(ShardqaError):
    status = 431


class SlowHead(ShardqaError):
    """Request line and headers did not arrive in time."""

    status = 408


class TooManyConnections(ShardqaError):
    status = 503


class WrongHost(ShardqaError):
    """The request names a host under which this server is not known."""

    status = 421


class WrongOrigin(ShardqaError):
    """A page of another server tries to write."""

    status = 403


class DocumentChanged(ShardqaError):
    """The document is not the one that If-Match names."""

    status = 412


class SlowBody(ShardqaError):
    """The body did not arrive in time."""

    status = 408


class BodyTooLarge(ShardqaError):
    status = 413


class EncodedBody(ShardqaError):
    """The body has a Content-Encoding."""

    status = 415


class NotJson(ShardqaError):
    """The Content-Type is another than application/json."""

    status = 415


class KeyWanted(ShardqaError):
    """The request comes from another machine and has no key."""

    status = 401


class KeyRefused(ShardqaError):
    """The key is unknown, revoked or expired."""

    status = 401


class NotAllowed(ShardqaError):
    """The key lacks the scope or the corpus that the request needs."""

    status = 403


class TooManyOfKey(ShardqaError):
    """The key has had its requests of a minute."""

    status = 429

    def __init__(self, message: str, wait: int) -> None:
        super().__init__(message)
        self.wait = wait  # seconds until the key is good again


class NotForm(ShardqaError):
    """The Content-Type is another than multipart/form-data."""

    status = 415


class BadForm(ShardqaError):
    """The form can't be read, holds no file, or holds a field that is none."""

    status = 400


class BadJson(ShardqaError):
    status = 400


class InvalidRequest(ShardqaError):
    """A field or parameter is missing, unknown or of the wrong type; the problem's `errors` name each."""

    status = 422


class DuplicateDocument(ShardqaError):
    """Two documents of one request have the same id and corpus."""

    status = 422


class InternalError(ShardqaError):
    """A fault of the server; the traceback is in its log, under the problem's `instance`."""

    code = "internal"
    status = 500


class ClientLeft(Exception):
    """The client closed its connection while its request was being served."""


class ClientStalled(Exception):
    """The client stopped reading its reply half-way; the connection is cut."""
