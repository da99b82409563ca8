"""RG.PYDUMPSESSIONS, RG.PYLOGS, RG.PYSTATS and RG.PYPROFILE."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

from shardqa.module.worker import resp
from shardqa.module.worker.gears.pipeline.log_ring import LogRing
from shardqa.module.worker.gears.pipeline.profiles import ORDERS, NotProfiled, Profiles

if TYPE_CHECKING:
    from shardqa.module.worker.gears.registry.sessions import Session, Sessions

USAGE = "RG.PYDUMPSESSIONS [TS] [VERBOSE] [CODE] [SESSIONS id…]"


def dump_sessions(sessions: Sessions, words: list[str]) -> bytes:
    """See USAGE. A session that is replaced or unregistered is gone at once: TS shows none."""
    verbose, wanted, rest = False, None, list(words)
    dead = coded = False
    while rest:
        word = rest.pop(0).upper()
        if word == "SESSIONS":
            wanted, rest = set(rest), []
        elif word == "VERBOSE":
            verbose = True
        elif word == "CODE":
            coded = True
        elif word == "TS":
            dead = True
        else:
            return resp.error(f"ERR argument {word[:40]!r} is unknown; {USAGE}")
    chosen = [] if dead else [s for s in sessions if wanted is None or s.id in wanted]
    return resp.encode([_session(session, verbose) + (_script(session) if coded else []) for session in chosen])


def _session(session: Session, verbose: bool) -> list[Any]:
    registered = session.shard.registrations
    registrations = [r.dump(registered.queue_of(r)) if verbose else r.id for r in session.registrations]
    return [
        *("ID", session.id, "sessionDescription", session.description, "refCount", len(registrations) + 1),
        *(
            "Linked",
            "true",
            "TS",
            "false",
            "requirementInstallationNeeded",
            0,
            "requirements",
            list(session.requirements),
        ),
        *("registrations", registrations),
    ]


def _script(session: Session) -> list[Any]:
    """What a backup needs to register it elsewhere."""
    return ["user", session.user, "code", session.code]


def memory_statistics() -> bytes:
    """Bytes of the worker process: RedisGears counts what its interpreter allocated, which the process is here."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[1]) * resource.getpagesize()
    peak = max(now, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)  # the kernel notes it now and then
    return resp.encode(["TotalAllocated", peak, "PeakAllocated", peak, "CurrAllocated", now])


def logs_after(ring: LogRing, after: str) -> bytes:
    if not after.isdecimal():
        return resp.error(f"ERR RG.PYLOGS [after] wants the number of a line, not {after[:40]!r}")
    return resp.encode(ring.after(int(after)))


def profile(profiles: Profiles, sessions: Sessions, words: list[str]) -> bytes:
    match words:
        case [verb, id, *order] if verb.upper() == "STATS" and len(order) <= 1:
            if order and order[0] not in ORDERS:
                return resp.error(f"ERR there is no order {order[0][:40]!r}; choose one of {', '.join(ORDERS)}")
            try:
                return resp.encode(profiles.text(id, order[0] if order else "tottime"))
            except NotProfiled as error:
                return resp.error(f"ERR {error}")
        case [verb, id] if verb.upper() == "RESET":
            if sessions.get(id) is None and not profiles.has(id):
                return resp.error(f"ERR session {id[:80]} does not exist")
            profiles.reset(id)
            return resp.OK
    return resp.error("ERR RG.PYPROFILE STATS session [order] or RG.PYPROFILE RESET session")
