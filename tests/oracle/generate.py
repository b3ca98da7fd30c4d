#!/usr/bin/env python3
"""Runs a plan through the oracle and writes its rows: `python generate.py heldout [first last]`."""

from __future__ import annotations

import csv
import importlib
import json
import pathlib
import sys
from importlib.metadata import version

import oracle
import preference

ROWS = pathlib.Path(__file__).parent / "rows"
RESULTS = ("params", "trainable_params", "peak_bytes", "peak_phase", "peak_op")
VERSIONS = " ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "peft"))


def row(run: dict[str, object]) -> dict[str, object]:
    """One run as a row: its configuration, its settings, the peak."""
    settings = dict(run)
    config = settings.pop("config")
    chosen = oracle.Settings(**settings)
    result = (oracle if chosen.objective == "sft" else preference).run(config, chosen)
    written = {"config": json.dumps(config)}
    for key, value in settings.items():
        written[key] = int(value) if isinstance(value, bool) else value
    return written | {key: result[key] for key in RESULTS} | {"versions": VERSIONS}


def main() -> None:
    """Write rows/<plan>.csv; runs that fail are named and left out."""
    name = sys.argv[1]
    runs = importlib.import_module(f"plan_{name}").plan()
    if len(sys.argv) > 3:
        runs = runs[int(sys.argv[2]) : int(sys.argv[3])]
    rows, failed = [], 0
    for run in runs:
        try:
            rows.append(row(run))
        except Exception as error:  # a plan may ask for what the libraries refuse
            failed += 1
            print("failed:", {**run, "config": run["config"]["model_type"]}, type(error).__name__, str(error)[:160], file=sys.stderr)
    columns = list(dict.fromkeys(key for written in rows for key in written))
    columns = [c for c in columns if c not in (*RESULTS, "versions")] + [*RESULTS, "versions"]
    ROWS.mkdir(exist_ok=True)
    with open(ROWS / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows, {failed} failed")


if __name__ == "__main__":
    main()
