"""A document as its `doc:` hash: read from a client's words or from the key, checked, compared by digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from shardqa import checks, keys, places
from shardqa import metadata as shared
from shardqa.errors import BadDocument
from shardqa.gears_functions import splitting
from shardqa.places import Raw
from shardqa.worker.runtime import Runtime

FIELDS = ("title", "text", "source", "metadata", "places", "origin")
NOTHING: list[bytes | None] = [None] * len(FIELDS)  # as HMGET tells of a key that is not there
REPLACE = "replace"  # a word of Ingest, not of the hash: "no" leaves a document alone that came from another origin
MAX_BYTES = 25_000_000  # of all fields: more than the bounds of each allow together
MAX_PASSAGES = 100_000  # more than a document of MAX_DOCUMENT bytes can have: its 5 million pieces make 48,000


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields that a writer sends; the rest of the hash is ours."""

    title: str
    text: str
    source: str
    metadata: str  # JSON object
    places: str = ""  # JSON, see shardqa.places
    origin: str = ""  # file or address it was read from; empty: put by hand
    marks: Raw = field(default_factory=list, compare=False)  # what `places` says

    def pairs(self) -> tuple[str, ...]:
        """Returns the fields and values of an HSET, one after another."""
        return tuple(word for name in FIELDS for word in (name, getattr(self, name)))

    def digest(self, cut_by: str = "") -> str:
        """Digests what passages are made of: title, text, places, source, metadata and the way of splitting.

        `cut_by` tells another tokenizer than the English one.
        """
        digest = blake2b(f"{splitting.VERSION}{cut_by}".encode(), digest_size=16)
        for part in (self.title, self.text, self.places, self.source, self.metadata):
            content = part.encode()
            digest.update(b"\0%d\0" % len(content) + content)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Stored:
    """A `doc:` hash as it lies in Redis."""

    fields: list[bytes | None]  # in the order of FIELDS
    digest: str  # of what its passages were made of; empty when they are not, or not all, in Redis
    passages: int | None  # as many as there may be; None: never ingested
    is_huge: bool = False  # it has more than MAX_BYTES, and was not read

    @property
    def text(self) -> bytes | None:
        return self.fields[FIELDS.index("text")]

    @property
    def origin(self) -> str:
        return (self.fields[FIELDS.index("origin")] or b"").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A document that is to be written."""

    key: str
    doc: keys.DocKey
    fields: Fields
    digest: str
    may_replace: bool = True  # a document of another origin
    cut_by: str = ""  # the tokenizer that the digest tells of

    @classmethod
    def of_words(cls, key: str, pairs: Sequence[str | bytes], cut_by: str = "") -> Incoming:
        """Raises BadKey, BadDocument, DocumentTooLarge."""
        fields = from_words(key, pairs)
        may_replace = dict(zip(pairs[::2], pairs[1::2], strict=True)).get(REPLACE) not in ("no", b"no")
        return cls(key, keys.parse_doc(key), fields, fields.digest(cut_by), may_replace, cut_by)


def from_words(key: str, pairs: Sequence[str | bytes]) -> Fields:
    """Reads `field value …`; fields left out are empty. Raises BadDocument, DocumentTooLarge."""
    if len(pairs) % 2:
        raise BadDocument(f"document {key!r} has {len(pairs)} words; send field value pairs of {', '.join(FIELDS)}")
    words = dict(zip(pairs[::2], pairs[1::2], strict=True))
    unknown = [name for name in words if name not in (*FIELDS, REPLACE)]
    if unknown:
        raise BadDocument(f"document {key!r} has the field {unknown[0]!r}; fields are {', '.join(FIELDS)}")
    return _checked(key, {name: words.get(name, "") for name in FIELDS})


def from_hash(key: str, values: Sequence[bytes | None]) -> Fields:
    """Reads the reply of `HMGET key` with FIELDS. Raises BadDocument, DocumentTooLarge."""
    return _checked(key, {name: value or b"" for name, value in zip(FIELDS, values, strict=True)})


async def stored(runtime: Runtime, key: str) -> Stored | None:
    """Returns what is at `key` now, which is measured before it is read; None for another type than a hash."""
    (stored_fields,) = await _stored_of(runtime, [key])
    return stored_fields


async def stored_of(runtime: Runtime, names: Sequence[str]) -> list[Stored | None]:
    """Does what `stored` does for several keys; reads only those that exist, since none of a new file does."""
    lengths = await runtime.calls([("HLEN", name) for name in names])
    there = [name for name, length in zip(names, lengths, strict=True) if length != 0]
    by_name = dict(zip(there, await _stored_of(runtime, there) if there else (), strict=True))
    return [by_name[name] if name in by_name else Stored(NOTHING, "", None) for name in names]


async def _stored_of(runtime: Runtime, names: Sequence[str]) -> list[Stored | None]:
    sizes = await runtime.calls([("HSTRLEN", name, field) for name in names for field in FIELDS])
    hashes = dict[str, Stored | None]()
    for n, name in enumerate(names):
        hashes[name] = _measured(sizes[n * len(FIELDS) : (n + 1) * len(FIELDS)])
    read = [name for name, one in hashes.items() if one is not None and not one.is_huge]
    replies = await runtime.calls([("HMGET", name, *FIELDS, "digest", "passages") for name in read]) if read else []
    for name, reply in zip(read, replies, strict=True):
        if _is_of_another_type(reply):
            hashes[name] = None
            continue
        assert not isinstance(reply, Exception)
        *fields, digest, count = reply
        hashes[name] = Stored(fields, (digest or b"").decode("ascii", "replace"), count_of_passages(count))
    return list(hashes.values())


def _measured(sizes: Sequence[Any]) -> Stored | None:
    """Returns what the sizes of a key's fields say of it; None where it is no hash. Raises redis.ResponseError."""
    if any(map(_is_of_another_type, sizes)):
        return None
    return Stored(NOTHING, "", None, is_huge=sum(sizes) > MAX_BYTES)


def _is_of_another_type(reply: object) -> bool:
    """Returns whether the reply is Redis' refusal of a key that is no hash. Raises any other error in its place."""
    if isinstance(reply, Exception) and not str(reply).startswith("WRONGTYPE"):
        raise reply
    return isinstance(reply, Exception)


def encoded(fields: Fields) -> list[bytes | None]:
    """Returns the reply of an `HMGET` with FIELDS for these fields."""
    return [getattr(fields, name).encode() for name in FIELDS]


def count_of_passages(value: bytes | None) -> int | None:
    """Returns the field `passages` of a hash; None where it is absent or not ours: any client may write it."""
    if value is None or not value.isdigit() or len(value) > len(str(MAX_PASSAGES)) or int(value) > MAX_PASSAGES:
        return None
    return int(value)


def _checked(key: str, raw: dict[str, str | bytes]) -> Fields:
    fields: dict[str, Any] = {name: _decoded(key, name, value) for name, value in raw.items()}
    checks.document(f"document {key!r}", **{name: fields[name] for name in ("text", "title", "source", "origin")})
    _check_metadata(key, fields["metadata"])
    return Fields(**fields, marks=places.check(fields["places"]))


def _decoded(key: str, name: str, value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadDocument(f"the {name} of document {key!r} is not UTF-8 (byte {error.start}); re-encode it") from None


def _check_metadata(key: str, metadata: str) -> None:
    if not metadata:
        return
    shared.check_size(key, metadata)
    try:
        value: Any = orjson.loads(metadata)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"the metadata of document {key!r} is not JSON ({error}); send an object") from None
    if not isinstance(value, dict):
        raise BadDocument(f"the metadata of document {key!r} is a JSON {type(value).__name__}; send an object")
    shared.check_depth(key, value)
