"""A model of one large table: 64 MB in `make test`, 1.3 GB with FAULTS=all.

That is more than the 1 GiB that a frame between worker and Redis takes, and than DUMP can carry.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

from shardqa import ai

LARGE = os.environ.get("FAULTS") == "all"
ROWS = 317_000 if LARGE else 16_000  # of 4 KiB each
SIZE = ROWS * 4096
SECONDS = 600.0 if LARGE else 60.0


def runs(client: Any, key: str) -> bool:
    """Whether the model is there and gives the first, the middle and the last row."""
    rows = np.array([0, ROWS // 2, ROWS - 1])
    try:
        (output,) = ai.Client(client).run(key, [rows])
    except ai.AiFault:
        return False
    return bool((output == rows.astype(np.float32)[:, None]).all())


def anonymous(pid: int) -> int:
    """Bytes of a process' memory that are no pages of a file."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))
