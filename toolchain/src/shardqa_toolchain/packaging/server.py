"""The smallest server of a reader: one process, one thread, Python's own HTTP.

python -m shardqa_toolchain.packaging.server FOLDER PORT    # POST {"question": "...", "passage": "..."}
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.serving import HEADERS, Server


def main() -> None:
    """Answers until it is ended; port 0 takes a free one, which is printed."""
    answers = Server(Answerer(Path(sys.argv[1])))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            status, reply = answers.http("POST", self.rfile.read(length))
            body = json.dumps(reply, ensure_ascii=False).encode()
            self.send_response(status)
            for name, value in {**HEADERS, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing of requests."""

    server = HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
