"""The command line: `python -m tests.module.torture --minutes 5`."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.module.torture import rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="of the first round")
    parser.add_argument("--only", choices=list(rounds.FUZZERS), help="one fuzzer alone")
    parser.add_argument("--log", type=Path, help="also writes the report there after every seed")
    options = parser.parse_args()
    names = [options.only] if options.only else list(rounds.FUZZERS)
    counts, start = rounds.Counts(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="shardqa-torture-") as folder, rounds.running(Path(folder)) as pair:

        def report() -> str:
            return f"seeds from {options.seed}\n{rounds.report(pair, counts, time.monotonic() - start)}"

        try:
            seed = options.seed
            while time.monotonic() < start + 60 * options.minutes:
                for name in names:
                    rounds.play(pair, name, seed, counts)
                seed += 1
                if options.log:
                    options.log.write_text(report() + "\n")
        finally:
            print(report(), flush=True)


if __name__ == "__main__":
    main()
