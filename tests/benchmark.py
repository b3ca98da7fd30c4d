"""How long daily commands take here: `make benchmark` prints it, nothing is asserted."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests import site_build

RECIPE = b'{"model": "llama-3.1-8b", "method": "qlora"}\n'


def timed(name: str, command: Sequence[str], given: bytes = b"") -> bytes:
    """Run a module and print its time; returns what it said."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=site_build.ROOT, env=site_build.environment(), input=given,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    ended = "" if done.returncode == 0 else f"  (ended with {done.returncode})"
    print(f"{time.perf_counter() - start:7.2f} s  {name}{ended}", flush=True)
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = timed("build of the site in three languages", ["tests.benchmark_build", str(Path(folder) / "site")])
        print(said.decode("utf-8").rstrip())
    timed("check of all pages and data", ["macros", "check"])
    timed("one estimate", ["macros", "estimate", "--jsonl"], RECIPE)
    timed("1000 estimates", ["macros", "estimate", "--jsonl"], RECIPE * 1000)


if __name__ == "__main__":
    main()
