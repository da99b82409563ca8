"""`python -m shardqa.api`: serves the app. WEB_CONCURRENCY (uvicorn's own variable) sets the number of processes."""

import os
import sys

from pydantic import ValidationError

from shardqa import extras
from shardqa.config import Settings

try:
    import uvicorn

    from shardqa.api import logs, metrics
    from shardqa.api.door import Bounded
except ModuleNotFoundError as fault:
    sys.exit(extras.missing("the API", fault, "api"))

KEEP_ALIVE = 30  # seconds that an idle connection stays open
GRACE = 10  # seconds that running requests get when the process is told to stop
BACKLOG = 512  # connections that wait to be accepted


def main() -> int:
    try:
        settings, processes = Settings(), _processes()
    except (ValidationError, ValueError, FileNotFoundError) as error:
        print(f"shardqa: {error}", file=sys.stderr)
        return 1
    with metrics.shared_by(processes):
        _serve(settings, processes)
    return 0


def _processes() -> int:
    """Raises ValueError."""
    given = os.environ.get("WEB_CONCURRENCY", "1")
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"WEB_CONCURRENCY is {given!r}, and a number of processes from 1 on is wanted")
    return int(given)


def _serve(settings: Settings, processes: int) -> None:
    uvicorn.run(
        "shardqa.api.app:create_app",
        factory=True,
        workers=processes,
        host=settings.http_host,
        port=settings.http_port,
        loop="uvloop",
        http=Bounded,
        ws="none",
        log_config=logs.configuration(settings.log),
        access_log=False,  # shardqa.api.access writes its own, with times and request ids
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )


if __name__ == "__main__":
    sys.exit(main())
