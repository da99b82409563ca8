"""A document's metadata, as JSON: bounded where it comes in, so that whatever is stored can be read again."""

import json
from typing import Any

import orjson

from shardqa.errors import BadDocument

MAX_DEPTH = 32  # objects and lists within one another; readers of JSON give up at 255 (pydantic) to 1,024 (orjson)
MAX_BYTES = 65_536  # of its JSON: it travels with the document, and is not searched


def pack(document: str, metadata: dict[str, Any]) -> str:
    """The JSON of metadata. Raises BadDocument, with the document, for what is too deep, too large, or not JSON."""
    check_depth(document, metadata)
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        text.encode()
        orjson.dumps(metadata)  # by which it travels on
    except UnicodeEncodeError as error:
        why = f"holds a lone surrogate at character {error.start} of its JSON; encode it as UTF-8"
        raise BadDocument(f"the metadata of document {document!r} {why}") from None
    except ValueError:
        raise BadDocument(f"the metadata of document {document!r} holds NaN or infinity; send null or a text") from None
    except TypeError as error:  # a number of more than 64 bits
        raise BadDocument(f"the metadata of document {document!r} is no JSON: {error}; send that as a text") from None
    return check_size(document, text)


def unpack(value: str | None) -> dict[str, Any]:
    """Reads the field, which any client may write: what `pack` would not have made reads as none."""
    if not value or len(value.encode()) > MAX_BYTES:
        return {}
    try:
        metadata = json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) and depth(metadata) <= MAX_DEPTH else {}


def check_depth(document: str, metadata: object) -> None:
    if depth(metadata) > MAX_DEPTH:
        raise BadDocument(
            f"the metadata of document {document!r} is nested more than {MAX_DEPTH} deep; flatten it, or send the "
            "inner part as text"
        )


def check_size(document: str, text: str) -> str:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise BadDocument(
            f"the metadata of document {document!r} has {size:,} bytes as JSON, more than {MAX_BYTES:,}; shorten it, "
            "or put what shall be searched into the text"
        )
    return text


def depth(value: object) -> int:
    """Counts objects and lists within one another, MAX_DEPTH + 1 for any more; 0 for a plain value."""
    level = [value]
    for deep in range(MAX_DEPTH + 1):
        containers = [one for one in level if isinstance(one, (dict, list))]
        if not containers:
            return deep
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
    return MAX_DEPTH + 1
