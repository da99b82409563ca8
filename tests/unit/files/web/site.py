"""A site of the web for tests: a real HTTP server on loopback that tells what it was asked."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Site:
    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)  # by target
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # target, headers

    def url(self, target: str) -> str:
        return f"http://localhost:{self.port}{target}"

    def put(self, target: str, content: str | bytes, type_: str = "text/html", status: int = 200, **more: str) -> None:
        body = content.encode() if isinstance(content, str) else content
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        self.answers[target] = (status, {"Content-Type": type_, "Content-Length": str(len(body)), **headers}, body)

    def redirect(self, target: str, to: str) -> None:
        self.put(target, b"", status=302, Location=to)

    def targets(self) -> list[str]:
        return [target for target, _ in self.requests]


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, dict(self.headers)))
            status, headers, body = site.answers.get(self.path, (404, {"Content-Length": "0"}, b""))
            if "ETag" in headers and self.headers.get("If-None-Match") == headers["ETag"]:
                status, headers, body = 304, {}, b""
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None: ...  # clients that go away are meant to

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:  # the handshake is the handler's, so that one who breaks it off does not hold up the others
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
