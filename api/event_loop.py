"""The server's event loop: uvloop's, whose handshakes of TLS end as soon as a head of HTTP must."""

from typing import Any

import uvloop

from shardqa.api.http_protocol import HEAD_SECONDS


class Loop(uvloop.Loop):
    async def create_server(self, *positional: Any, **named: Any) -> Any:
        """Bounds the handshake, as no setting of uvicorn does: a silent client would hold its descriptor for 60 s."""
        if named.get("ssl") is not None:
            named["ssl_handshake_timeout"] = HEAD_SECONDS
        return await super().create_server(*positional, **named)
