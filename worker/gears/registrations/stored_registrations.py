"""The registrations of a stored session, and which is which when its script runs again.

The script may come from a newer package, which registers more, less, or in another order. What has the same reader,
keys and trigger keeps its id, so that a node which has not stored the session anew sends it what it is for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shardqa.worker.gears.registrations.registrations import Registration

WORDS = 5  # of a body before its three lists: reader, mode, description, prefix, trigger
LISTS = 3


@dataclass(frozen=True, slots=True)
class StoredRegistration:
    id: str  # empty: unregistered since
    body: tuple[str, ...] = ()  # its REGISTER's items behind the id; none where the module does not tell them

    def is_like(self, registration: Registration) -> bool:
        """Returns whether both are for the same keys or trigger."""
        if not self.body:
            return True
        reader, _, _, prefix, trigger = self.body[:WORDS]
        return (reader, prefix, trigger) == (registration.reader, registration.prefix, registration.trigger)

    def is_equal(self, registration: Registration) -> bool:
        return not self.body or list(self.body) == registration.wire()[1:]


class StoredIds:
    """The stored ids, for registrations in the script's order; `new` makes ids for new ones."""

    def __init__(self, registrations: Sequence[StoredRegistration], new: Callable[[], str]) -> None:
        self._stored, self._left, self._new = registrations, list(registrations), new

    def next(self, registration: Registration) -> str:
        """Returns the registration's stored id; empty where it was unregistered since."""
        for fits in (StoredRegistration.is_equal, StoredRegistration.is_like):
            for one in self._left:
                if fits(one, registration):
                    self._left.remove(one)
                    return one.id
        return self._new()

    def are_those_of(self, registrations: Sequence[Registration]) -> bool:
        """Returns whether these are just the registrations that the module has stored."""
        valid = [one for one in self._stored if one.id]
        return [one.id for one in valid] == [registration.id for registration in registrations] and all(
            one.is_equal(registration) for one, registration in zip(valid, registrations, strict=True)
        )


def parse(count: int, items: Sequence[str]) -> list[StoredRegistration]:
    """Parses a SESSION frame's items: `count` ids, then as many bodies, or none. Raises ValueError for others."""
    ids, rest = items[:count], iter(items[count:])
    if len(items) <= count:
        if len(ids) != count:
            raise ValueError(f"{count} registrations are named, {len(ids)} are there")
        return [StoredRegistration(id) for id in ids]
    result = [StoredRegistration(id, tuple(_body(rest))) for id in ids]
    if next(rest, None) is not None:
        raise ValueError(f"there is more than {count} registrations")
    return result


def _body(items: Iterator[str]) -> list[str]:
    body = [_next(items) for _ in range(WORDS)]
    for _ in range(LISTS):
        body.append(_next(items))
        body += [_next(items) for _ in range(int(body[-1]))]
    return body


def _next(items: Iterator[str]) -> str:
    item = next(items, None)
    if item is None:
        raise ValueError("a registration breaks off")
    return item
