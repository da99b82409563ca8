"""Faults of an HTTP request itself; faults of questions, documents and the cluster are in shardqa.errors."""

from shardqa.errors import ShardqaError


class NoSuchRoute(ShardqaError):
    code = "no_such_route"
    status = 404


class MethodNotAllowed(ShardqaError):
    code = "method_not_allowed"
    status = 405


class BadHttp(ShardqaError):
    """The bytes are no HTTP, or HTTP that this server does not take."""

    code = "bad_http"
    status = 400


class UrlTooLong(ShardqaError):
    code = "url_too_long"
    status = 414


class HeadTooLarge(ShardqaError):
    code = "head_too_large"
    status = 431


class SlowHead(ShardqaError):
    """Request line and headers did not arrive in time."""

    code = "slow_head"
    status = 408


class TooManyConnections(ShardqaError):
    code = "too_many_connections"
    status = 503


class WrongHost(ShardqaError):
    """The request names a host under which this server is not known."""

    code = "wrong_host"
    status = 421


class WrongOrigin(ShardqaError):
    """A page of another server tries to write."""

    code = "wrong_origin"
    status = 403


class DocumentChanged(ShardqaError):
    """The document is not the one that If-Match names."""

    code = "document_changed"
    status = 412


class SlowBody(ShardqaError):
    """The body did not arrive in time."""

    code = "slow_body"
    status = 408


class BodyTooLarge(ShardqaError):
    code = "body_too_large"
    status = 413


class EncodedBody(ShardqaError):
    """The body has a Content-Encoding."""

    code = "encoded_body"
    status = 415


class NotJson(ShardqaError):
    """The Content-Type is another than application/json."""

    code = "not_json"
    status = 415


class KeyWanted(ShardqaError):
    """The request comes from another machine and has no key."""

    code = "key_wanted"
    status = 401


class KeyRefused(ShardqaError):
    """The key is unknown, revoked or expired."""

    code = "key_refused"
    status = 401


class NotAllowed(ShardqaError):
    """The key lacks the scope or the corpus that the request needs."""

    code = "not_allowed"
    status = 403


class TooManyOfKey(ShardqaError):
    """The key has had its requests of a minute."""

    code = "too_many_of_key"
    status = 429

    def __init__(self, message: str, wait: int) -> None:
        super().__init__(message)
        self.wait = wait  # seconds until the key is good again


class NotForm(ShardqaError):
    """The Content-Type is another than multipart/form-data."""

    code = "not_form"
    status = 415


class BadForm(ShardqaError):
    """The form can't be read, holds no file, or holds a field that is none."""

    code = "bad_form"
    status = 400


class BadJson(ShardqaError):
    code = "bad_json"
    status = 400


class InvalidRequest(ShardqaError):
    """A field or parameter is missing, unknown or of the wrong type; the problem's `errors` name each."""

    code = "invalid_request"
    status = 422


class DuplicateDocument(ShardqaError):
    """Two documents of one request have the same id and corpus."""

    code = "duplicate_document"
    status = 422


class InternalError(ShardqaError):
    """A fault of the server; the traceback is in its log, under the problem's `instance`."""

    code = "internal"
    status = 500


class ClientLeft(Exception):
    """The client closed its connection while its request was being served."""


class ClientStalled(Exception):
    """The client stopped reading its reply half-way; the connection is cut."""
