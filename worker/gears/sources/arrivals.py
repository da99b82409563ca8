"""Events on their way from the socket to their registrations: what came together goes to the loop in one go."""

from shardqa.worker.gears.registrations.registrations import Registrations
from shardqa.worker.gears.sessions.sessions import Sessions
from shardqa.worker.gears.sources.events import Events
from shardqa.worker.runtime import KeyEvent
from shardqa.worker.threads import Threads

LOST = {  # types in an EVENT that is to be counted, and not run
    "lost": "two workers ended during its function",
    "full": "those that wait take 256 MB already",
}


class Arrivals:
    """The events on their way. The leading thread calls `add` and `hand_over`, the loop's all else."""

    def __init__(self, threads: Threads, registrations: Registrations, sessions: Sessions, events: Events) -> None:
        self._threads = threads
        self._registrations = registrations
        self._sessions = sessions
        self._events = events
        self._arrived: list[tuple[str, KeyEvent]] = []  # registration id, event
        self._early: list[tuple[str, KeyEvent]] = []  # of registrations that a replay is about to bring back

    def add(self, registration: str, event: KeyEvent) -> None:
        self._arrived.append((registration, event))

    def hand_over(self) -> None:
        """Hands the events over that came together, so that they keep their place among the other frames."""
        if self._arrived:
            events, self._arrived = self._arrived, []
            self._threads.loop.call_soon_threadsafe(self._take, events)

    def _take(self, events: list[tuple[str, KeyEvent]]) -> None:
        for id, event in events:
            if self._early or (self._sessions.replays.replaying() and self._registrations.get(id) is None):
                self._early.append((id, event))
                if len(self._early) == 1:
                    self._threads.task(self._push_early())
            else:
                self._push(id, event)

    async def _push_early(self) -> None:
        await self._sessions.replays.settled(lambda: None)
        early, self._early = self._early, []
        for id, event in early:
            self._push(id, event)

    def _push(self, id: str, event: KeyEvent) -> None:
        registration = self._registrations.get(id)
        if registration is None:  # unregistered meanwhile
            self._events.settle(event)
        elif event.type in LOST:
            self._events.lost(registration, event, LOST[event.type])
        else:
            self._events.push(registration, event)
