"""Cursors as clients see them: sealed, so that no id stands in them, and of use to nobody but who got them.

Deterministic authenticated encryption as SIV has it (RFC 5297), of what the standard library gives: the tag is an HMAC
of the cursor and of what it belongs to, and begins the stream that hides the cursor. Pure functions.
"""

import base64
import binascii
import hashlib
import hmac

from shardqa.errors import BadCursor

TAG = 16  # bytes


def sealed(secret: bytes, owner: str, cursor: str) -> str:
    data = cursor.encode()
    tag = _tag(secret, owner, data)
    return base64.urlsafe_b64encode(tag + _hidden(secret, tag, data)).decode().rstrip("=")


def opened(secret: bytes, owner: str, cursor: str) -> str:
    """Returns the cursor that was sealed for this owner. Raises BadCursor for anything else."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    tag, data = raw[:TAG], _hidden(secret, raw[:TAG], raw[TAG:])
    if not hmac.compare_digest(tag, _tag(secret, owner, data)):
        raise BadCursor(f"{cursor[:40]!r} is no cursor of this list; send that of the page before, or none")
    return data.decode()


def _tag(secret: bytes, owner: str, data: bytes) -> bytes:
    return hmac.digest(secret, b"tag\0" + owner.encode() + b"\0" + data, "sha256")[:TAG]


def _hidden(secret: bytes, tag: bytes, data: bytes) -> bytes:
    """Encrypts or decrypts the data: the same stream is laid over it by exclusive or."""
    start = hmac.digest(secret, b"stream\0" + tag, "sha256")
    stream = hashlib.shake_256(start).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))
