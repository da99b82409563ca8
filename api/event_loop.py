"""The server's event loop: uvloop's, whose handshakes of TLS end as soon as a head of HTTP must."""

import gc
from typing import Any

import uvloop

from shardqa import machine
from shardqa.api.http_protocol import HEAD_SECONDS


class Loop(uvloop.Loop):
    async def create_server(self, *positional: Any, **options: Any) -> Any:
        """Bounds the handshake, as no setting of uvicorn does: a silent client would hold its descriptor for 60 s."""
        gc.freeze()  # of 90,000 objects that start-up made, each full collection would hold up requests for 20 to 40 ms
        gc.enable()
        machine.keep_little_freed()  # after many odd bodies 143 MB are left, and not 393, of 85
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = HEAD_SECONDS
        return await super().create_server(*positional, **options)
