"""`python -m shardqa.api`: serves the app. WEB_CONCURRENCY (uvicorn's own variable) sets the number of processes.

What is wrong with the settings is told before anything large is imported; the process that only watches others never
imports the app.
"""

import argparse
import asyncio
import gc
import os
import ssl
import sys

from pydantic import ValidationError

from shardqa import extras
from shardqa.address import is_loopback
from shardqa.config import Settings
from shardqa.errors import ShardqaError

KEYS_SECONDS = 5.0  # to look whether there are keys, at the start
KEEP_ALIVE = 30  # seconds that an idle connection stays open
GRACE = 10  # seconds that running requests get when the process is told to stop
BACKLOG = 512  # connections that wait to be accepted


def main() -> int:
    try:
        _take_flags()
        settings, processes = Settings(), _processes()
        _check_tls(settings)
        asyncio.run(_check_keys(settings))
    except (ValidationError, ValueError, FileNotFoundError) as error:
        print(f"shardqa: {error}", file=sys.stderr)
        return 1
    try:
        _serve(settings, processes)
    except ModuleNotFoundError as fault:
        sys.exit(extras.missing("the API", fault, "api"))
    return 0


def _take_flags() -> None:
    """Puts the flags into the environment, where each process of this port reads its settings."""
    parser = argparse.ArgumentParser(prog="python -m shardqa.api", description="Settings come from SHARDQA_*.")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate for https (SHARDQA_HTTP_TLS_CERT)")
    parser.add_argument("--tls-key", metavar="FILE", help="its key (SHARDQA_HTTP_TLS_KEY)")
    flags = parser.parse_args()
    for name, value in (("SHARDQA_HTTP_TLS_CERT", flags.tls_cert), ("SHARDQA_HTTP_TLS_KEY", flags.tls_key)):
        if value is not None:
            os.environ[name] = value


def _check_tls(settings: Settings) -> None:
    """Raises ValueError."""
    cert, key = settings.http_tls_cert, settings.http_tls_key
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise ValueError("https needs both: give --tls-cert and --tls-key")
    for path in (cert, key):
        if not path.is_file():
            raise ValueError(f"{path} is no file; https needs a certificate and its key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as error:  # of ssl, too
        raise ValueError(f"{cert} and {key} can't serve https ({error}); give a certificate and its key, PEM") from None


async def _check_keys(settings: Settings) -> None:
    """Checks that a port which others reach asks for a key, and that there is one. Raises ValueError.

    Where the cluster can't be asked yet, the server starts: nobody comes in without a key anyway.
    """
    if settings.http_keys == "none" or (settings.http_keys == "others" and is_loopback(settings.http_host)):
        return
    from redis.exceptions import RedisError

    from shardqa.engine import Engine

    try:
        async with asyncio.timeout(KEYS_SECONDS):
            engine = await Engine.connect(settings)
            try:
                keys = await engine.api_keys.all()
            finally:
                await engine.close()
    except (ShardqaError, RedisError, OSError):
        return
    if not keys:
        reason = "SHARDQA_HTTP_KEYS=all" if is_loopback(settings.http_host) else "others can reach it, so it"
        raise ValueError(
            f"{settings.http_host}: {reason} asks for keys, and there is none: make one with "
            "'shardqa keys create NAME --scope ask', or set SHARDQA_HTTP_KEYS=none where a proxy checks who may come"
        )


def _processes() -> int:
    """Raises ValueError."""
    number = os.environ.get("WEB_CONCURRENCY", "1")
    if not number.isdecimal() or int(number) < 1:
        raise ValueError(f"WEB_CONCURRENCY is {number!r}, and a number of processes from 1 on is wanted")
    return int(number)


def _serve(settings: Settings, processes: int) -> None:
    gc.disable()  # imports leave no garbage to look for; until the app starts
    import uvicorn

    from shardqa.api import logs, metrics
    from shardqa.api.http_protocol import HttpProtocol

    with metrics.shared_by(processes):
        uvicorn.run(
            "shardqa.api.app:create_app",
            factory=True,
            workers=processes,
            host=settings.http_host,
            port=settings.http_port,
            loop="shardqa.api.event_loop:Loop",
            http=HttpProtocol,
            ws="none",
            log_config=logs.configuration(settings.log),
            access_log=False,  # shardqa.api.access writes its own, with times and request ids
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=settings.http_tls_cert,
            ssl_keyfile=settings.http_tls_key,
        )


if __name__ == "__main__":
    sys.exit(main())
