"""Makes the hand-made faults of mutations.toml one by one and says which of them the tests catch.

    python tools/mutations.py [--only WORD] [--out FILE]

Each fault is put into the working tree, which must be clean, its tests run until the first failure, and the file is
restored. A fault that no test catches is a promise that nobody guards.
"""

import argparse
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS = Path(__file__).with_suffix(".toml")
C_TESTS = ("make", "-s", "-C", "module", "test")


@dataclass(frozen=True, slots=True)
class Fault:
    file: str
    """The end of a path that no other file of the repository has."""
    old: str
    """Stands in the file exactly once."""
    new: str
    tests: list[str]
    """Folders and files of tests, the likeliest first."""

    def path(self) -> Path:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [name for name in listed.splitlines() if f"/{name}".endswith(f"/{self.file}")]
        if len(paths) != 1:
            raise SystemExit(f"{self.file!r} names {len(paths)} files: {paths}; give more or less of its path")
        return ROOT / paths[0]


def faults() -> list[Fault]:
    return [Fault(**entry) for entry in tomllib.loads(FAULTS.read_text())["fault"]]


def check(listed: list[Fault]) -> None:
    """Exits where a fault can't be made: the code has changed."""
    wrong = [one for one in listed if one.path().read_text().count(one.old) != 1]
    if wrong:
        lines = [f"{one.file}: {one.path().read_text().count(one.old)} times {one.old!r}" for one in wrong]
        raise SystemExit("\n".join([*lines, "each must stand there once; adapt mutations.toml"]))


def build(path: Path) -> bool:
    """Whether the module could be built, where the file is one of C."""
    if path.suffix != ".c":
        return True
    return subprocess.run(["make", "-s", "-C", "module"], cwd=ROOT, capture_output=True, check=False).returncode == 0


def is_caught(fault: Fault) -> bool:
    path = fault.path()
    whole = path.read_text()
    try:
        path.write_text(whole.replace(fault.old, fault.new))
        if not build(path):
            raise SystemExit(f"{fault.file} does not compile with {fault.new!r}")
        if path.suffix == ".c" and subprocess.run(C_TESTS, cwd=ROOT, capture_output=True, check=False).returncode != 0:
            return True
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "2", *fault.tests]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1, 2):
            raise SystemExit(run.stdout[-2000:] + run.stderr[-2000:])
        return run.returncode != 0
    finally:
        path.write_text(whole)
        build(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose file holds this word")
    parser.add_argument("--out", type=Path, help="append a line for each fault to this file")
    arguments = parser.parse_args()
    listed = faults()
    check(listed)
    count = catches = 0
    for fault in listed:
        if arguments.only not in fault.file:
            continue
        before = time.monotonic()
        good = is_caught(fault)
        count, catches = count + 1, catches + good
        line = (
            f"{'caught  ' if good else 'SURVIVED'} {time.monotonic() - before:4.0f} s  {fault.file}: {fault.new[:80]}"
        )
        print(line, flush=True)
        if arguments.out:
            with arguments.out.open("a") as out:
                out.write(line + "\n")
    print(f"{catches} of {count} caught")


if __name__ == "__main__":
    main()
