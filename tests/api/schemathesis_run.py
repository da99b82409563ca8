"""HTTP by schemathesis: requests made from the API's own description, valid and not, and all of its checks.

    python -m tests.api.schemathesis_run --minutes 10      (make torture-http MINUTES=10)

No reply may be a server's error or one that the description does not have; what it describes as valid must be taken,
and what it does not, refused. Starts a cluster and an API of its own. Prints how to repeat what it found.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.api.conftest import running_api
from tests.nodes import prepare, running_cluster

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
# All checks but two. What fits the schema may still be refused for what no schema can say (no words in a text); and
# in a list each question or document has its own outcome, so one at fault does not refuse the others. No upload is read
# by OCR: that takes seconds, and has tests of its own.
CONFIG = """
checks.positive_data_acceptance.enabled = false

[[operations]]
include-name = "POST /v1/ask/batch"
checks.negative_data_rejection.enabled = false

[[operations]]
include-name = "POST /v1/files"
parameters = { ocr = false }

[[operations]]
include-name = "POST /v1/documents"
checks.negative_data_rejection.enabled = false
"""


def run(url: str, seconds: float | None, seed: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs schemathesis; the exit code is 0 where nothing was found. Without `seconds`, it runs what it makes of the
    description alone, without chance: the same each time.
    """
    command = [str(SCHEMATHESIS), "--config-file", str(_config(folder)), "run", f"{url}/openapi.json"]
    command += ["--phases", "examples,coverage"] if seconds is None else ["--max-time", str(round(seconds))]
    command += ["--seed", str(seed), "--mode", "all", "--continue-on-failure", "--warnings", "off", "--no-color"]
    command += ["--request-timeout", "30", "--suppress-health-check", "all", "--generation-database", "none"]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=(seconds or 0) + 300
    )


def _config(folder: Path) -> Path:
    path = folder / "schemathesis.toml"
    path.write_text(CONFIG)
    return path


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_cluster(Path(folder) / "data", shards=3) as cluster:
        prepare(cluster)
        with running_api(Path(folder), redis=cluster.seed()) as server:
            done = run(server.url, arguments.minutes * 60, arguments.seed, Path(folder))
            print(done.stdout, done.stderr)
            last = "\n".join(server.log().splitlines()[-20:])
            print(last if "Traceback" in server.log() else "no traceback in its log")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
