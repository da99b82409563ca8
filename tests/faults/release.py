"""`python -m tests.faults.release FOLDER COMMIT FILE`: the data of a release, as an RDB file that tests keep.

FOLDER is a checkout of that release (`git archive COMMIT | tar x -C FOLDER`). Its module is built there and its worker
run from there, with the Python packages of this environment. The file holds its functions as registered, and the
documents of `DOCUMENTS`; the reader is left out, since 24 MB are too much to keep.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from shardqa import keys
from tests.faults import documents
from tests.nodes import Node, wait_until

CORPUS = "kept"
VERSION = 7
DOCUMENTS = documents.NAMES[:4]  # one of them long
PARAGRAPHS = 240  # of the long one in the kept files: their own number, since they do not change with the tests
RUN = """import runpy, sys
sys.path.insert(0, {folder!r})
name = sys.argv[sys.argv.index("-m") + 1]
sys.argv[1:] = sys.argv[sys.argv.index("-m") + 2 :]
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""
CODE = "from shardqa.gears_functions.registration import register\nregister(GearsBuilder, runtime, override_reply)\n"


def text(document: str) -> str:
    """As the kept files hold it."""
    return documents.text(document, VERSION, PARAGRAPHS)


def python_of(release: Path, folder: Path) -> Path:
    """A Python whose `-m shardqa...` is the release's."""
    (folder / "run.py").write_text(RUN.format(folder=str(release / "src")))
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {folder / "run.py"} "$@"\n')
    program.chmod(0o755)
    return program


def serve_all_slots(node: Node) -> None:
    """Those that no key of the node's file has taken already."""
    with node.client() as client:
        for line in client.execute_command("CLUSTER", "NODES").decode().splitlines():
            ranges = [part.partition("-") for part in line.split()[8:]]
            taken = {slot for first, _, last in ranges for slot in range(int(first), int(last or first) + 1)}
        missing = [slot for slot in range(16_384) if slot not in taken]
        if missing:
            client.execute_command("CLUSTER", "ADDSLOTS", *missing)
        wait_until(lambda: b"cluster_state:ok" in client.execute_command("CLUSTER", "INFO"), "all slots are served")


def main() -> None:
    release, commit, file = Path(sys.argv[1]).resolve(), sys.argv[2], Path(sys.argv[3])
    subprocess.run(["make", "-s", "-C", str(release / "module")], check=True)
    with tempfile.TemporaryDirectory(prefix="shardqa-release-") as name:
        folder = Path(name)
        module, python = release / "module" / "shardqa.so", python_of(release, folder)
        node = Node(folder / "node", module=module, python=python, cluster=True).start()
        try:
            serve_all_slots(node)
            with node.client() as client:
                wait_until(
                    lambda: client.execute_command("RG.PYEXECUTE", CODE, "ID", "shardqa", "UPGRADE"), "functions"
                )
                for document in DOCUMENTS:
                    words = ("title", document, "text", text(document))
                    client.execute_command("RG.TRIGGERONKEY", "Ingest", keys.doc(CORPUS, document), *words)
                client.save()
            file.write_bytes((folder / "node" / "dump.rdb").read_bytes())
        finally:
            node.stop()
    print(f"{file}: {file.stat().st_size:,} bytes of {commit}")


if __name__ == "__main__":
    main()
