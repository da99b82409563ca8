"""The smallest server of a reader: one process, one thread, Python's own HTTP.

Weights that lie in a file of their own (`ladder.servers.with_weights_apart`) are mapped: what of the word table nobody
asks for takes no memory, and what the disk has is given back when others need it.

python -m shardqa_toolchain.packaging.server FOLDER PORT    # POST {"question": "...", "passage": "..."}
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import onnxruntime

from shardqa.machine import release_freed
from shardqa.models.session import MODEL_FILE, ReaderSession
from shardqa_toolchain.packaging.answering import Answerer
from shardqa_toolchain.packaging.serving import HEADERS, Server


def small_session(folder: Path) -> ReaderSession:
    """A session that copies no weight and keeps no memory between runs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.disable_prepacking", "1")
    return ReaderSession.of(onnxruntime.InferenceSession(str(folder / MODEL_FILE), options))


def main() -> None:
    """Answers until it is ended; port 0 takes a free one, which is printed."""
    folder = Path(sys.argv[1])
    answers = Server(Answerer(folder, session=small_session(folder)))
    release_freed()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            status, reply = answers.http("POST", self.rfile.read(length))
            body = json.dumps(reply, ensure_ascii=False).encode()
            release_freed()  # what a long row took
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
