"""Write data/peers.yml: what other tools say of the measured runs that count, and print it beside the guide's errors.

    make compare

fitcheck-llm runs as the package that requirements-benchmark.txt pins; the others are the formulas of peer_formulas.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from macros import accuracy
from macros.dataset import Dataset, load
from tests.peer_formulas import FORMULAS, Shape, targets

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "data" / "peers.yml"
PACKAGE = ROOT / ".cache" / "peer" / "bin" / "python"
HEAD = """\
# yaml-language-server: $schema=schemas/peers.json
#
# What other tools say of the runs of data/measurements.yml that count: bytes of tensors, without a fixed allowance for
# CUDA; null where the tool cannot describe the run. Written by tests/record_peers.py (`make compare`), not by hand.
"""
# Name, release or commit, and source of each.
TOOLS = {
    "fitcheck-llm": ("fitcheck-llm", None, "bouzid-2026-fitcheck"),
    "memory-gelato": ("memory-gelato", "8e82da5", "singh-2024-memory-gelato"),
    "unsloth-studio": ("Unsloth Studio", "007a781", "unsloth-2026-studio-estimator"),
    "gpu-poor": ("gpu_poor", "05d18ab", "chand-2024-gpu-poor"),
    "llama-factory": ("LLaMA-Factory, README", "00409ff", "llamafactory-2025-readme"),
}


def runs(dataset: Dataset) -> dict[str, accuracy.Comparison]:
    """The runs that count, by key."""
    return {row.run.key: row for row in accuracy.counted(accuracy.comparisons(dataset))}


def described(dataset: Dataset, row: accuracy.Comparison) -> dict[str, Any] | None:
    """A run as the tools take one: shape, recipe, adapted modules; None for what no tool here can describe.

    Mixtures of experts, the framework's own model code, kernels that replace Transformers', losses without all logits
    and weights that several cards share are known to none of them.
    """
    model, recipe = dataset.models[row.run.model], row.estimate.conditions
    usual = recipe["loss"] == "standard" and recipe["kernels"] == "none" and row.run.model_code == "transformers"
    if not usual or recipe["num_gpus"] > 1 or "num_local_experts" in model.config:
        return None
    return {"shape": Shape.of(model.config, model.parameters), "recipe": recipe}


def estimates(dataset: Dataset, tool: str) -> dict[str, int | None]:
    """Bytes of every counted run by one of the formulas."""
    found: dict[str, int | None] = {}
    for key, row in runs(dataset).items():
        run = described(dataset, row)
        found[key] = FORMULAS[tool](run["shape"], run["recipe"]) if run else None
    return found


def by_fitcheck(dataset: Dataset) -> tuple[str, dict[str, int | None]]:
    """The version of the package, and what it says of every counted run."""
    told = {key: run for key, row in runs(dataset).items() if (run := described(dataset, row))}
    asked = [
        {**run, "shape": asdict(run["shape"]), "targets": _targets(run["recipe"])} for run in told.values()
    ]
    command = [str(PACKAGE), "-m", "tests.fitcheck_peaks"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT, check=True)
    answer = json.loads(done.stdout)
    peaks = dict(zip(told, answer["peaks"], strict=True))
    return answer["version"], {key: peaks.get(key) for key in runs(dataset)}


def _targets(recipe: Mapping[str, Any]) -> list[str]:
    return [] if recipe["method"] == "full" else list(targets(recipe))


def main() -> None:
    dataset = load(ROOT)
    version, peaks = by_fitcheck(dataset)
    day = date.today().isoformat()
    lines = [HEAD]
    for key, (name, release, source) in TOOLS.items():
        package = key == "fitcheck-llm"
        figures = peaks if package else estimates(dataset, key)
        lines.append(f"{key}:\n  name: {name}\n  version: {version if package else release}\n")
        lines.append(f"  how: {'package' if package else 'formula'}\n  source: {source}\n  recorded: {day}\n  estimates:\n")
        lines += [f"    {run}: {'null' if size is None else size}\n" for run, size in figures.items()]
        lines.append("\n")
        _print(name, figures, runs(dataset))
    RECORD.write_text("".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _print(name: str, figures: Mapping[str, int | None], measured: Mapping[str, accuracy.Comparison]) -> None:
    pairs = [
        (size / measured[key].run.observed["allocated"] - 1, measured[key].error)
        for key, size in figures.items()
        if size is not None
    ]
    if not pairs:
        sys.exit(f"{name}: describes none of the {len(figures)} runs")
    theirs, ours = zip(*pairs, strict=True)
    print(
        f"{name:24s} {len(pairs):3d} of {len(figures)} runs  median {median(map(abs, theirs)):7.2%}"
        f"  largest {max(theirs, key=abs):+8.2%}  |  guide: {median(map(abs, ours)):.2%}, {max(ours, key=abs):+.2%}"
    )


if __name__ == "__main__":
    main()
