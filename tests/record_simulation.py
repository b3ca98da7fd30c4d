"""Write data/simulation.yml: how far the estimator is from the simulated training step, by recipe, setting and family.

    .venv/bin/python -m tests.record_simulation

Run it after a change of the estimator or of the rows in tests/oracle/rows; `make compare` does. The site reads the
summary and never the rows; tests/test_accuracy.py finds a summary that is not theirs any more.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from tests.oracle.compare import RECIPES, ROWS, Deviation, Refusal, compare, read, recipe_keys, share

RECORD = Path(__file__).resolve().parents[1] / "data" / "simulation.yml"
HEAD = """\
# yaml-language-server: $schema=schemas/simulation.json
#
# How far the estimator is from the training step that tests/oracle simulates: errors of the peak, relative to it.
# Written by tests/record_simulation.py (`make compare`), not by hand.
"""
LIBRARIES = ("torch", "transformers", "peft")
# What a run may have beside its recipe; each of them alone makes a group.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "objective": ("dpo", "grpo"),
    "loss": ("chunked", "fused"),
    "kernels": ("liger",),
    "quantization": ("fp4", "int8"),
    "use_dora": (True,),
    "padding": (True,),
    "keep_outputs": (True,),
    "optim": ("adamw_torch", "adamw_bnb_8bit", "adafactor", "sgd", "lion_8bit", "lion_32bit"),
}


def results() -> list[Deviation | Refusal]:
    """Every recorded row beside its estimate."""
    return [compare(row) for path in sorted(ROWS.glob("*.csv")) for row in read(path)]


def summary(rows: Iterable[Deviation | Refusal]) -> dict[str, dict[str, Any]]:
    """The records of data/simulation.yml by key, without their day."""
    rows = list(rows)
    records = {"all": {"by": "all", **_figures(rows)}}
    for name, keys in RECIPES.items():
        _add(records, f"recipe-{name}", [row for row in rows if row.row["recipe"] == name], by="recipe", recipe=keys)
    for key, values in SETTINGS.items():
        for value in values:
            chosen = [row for row in rows if recipe_keys(row.row).get(key) == value]
            word = str(value).lower().replace("_", "-")
            _add(records, f"setting-{key.replace('_', '-')}-{word}", chosen, by="setting", recipe={key: value})
    families: dict[str, list[Deviation | Refusal]] = {}
    for row in rows:
        families.setdefault(json.loads(row.row["config"])["model_type"], []).append(row)
    for family, chosen in sorted(families.items()):
        _add(records, f"family-{family.replace('_', '-')}", chosen, by="family", family=family)
    return records


def _add(records: dict[str, dict[str, Any]], key: str, rows: list[Deviation | Refusal], **kind: Any) -> None:
    if any(isinstance(row, Deviation) for row in rows):
        records[key] = {**kind, **_figures(rows)}


def _figures(rows: list[Deviation | Refusal]) -> dict[str, Any]:
    deviations = [row for row in rows if isinstance(row, Deviation)]
    sizes = sorted(abs(row.error) for row in deviations)
    return {
        "runs": len(deviations),
        "refused": len(rows) - len(deviations),
        "median_error": round(statistics.median(sizes), 7),
        "p95_error": round(share(sizes, 0.95), 7),
        "worst_error": round(max((row.error for row in deviations), key=abs), 7),
        # A moment whose peak is nearly as high counts as the right one, as in tests/test_oracle.py.
        "right_moment": sum(row.same_moment or row.moment_gap <= 0.005 for row in deviations),
        "versions": _versions(deviations),
    }


def _versions(rows: list[Deviation]) -> dict[str, str]:
    """The libraries that these runs used; the build of torch (+cpu) changes nothing here."""
    found: dict[str, set[str]] = {name: set() for name in LIBRARIES}
    for row in rows:
        words = row.row["versions"].split()
        for name, version in zip(words[::2], words[1::2], strict=True):
            found[name].add(version.split("+")[0])
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def text(records: dict[str, dict[str, Any]], day: str) -> str:
    """The file as it stands in data/."""
    lines = [HEAD]
    for key, record in records.items():
        lines.append(f"{key}:\n")
        lines += [f"  {name}: {_yaml(value)}\n" for name, value in {**record, "recorded": day}.items()]
        lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def _yaml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.7f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def main() -> None:
    records = summary(results())
    RECORD.write_text(text(records, date.today().isoformat()), encoding="utf-8")
    whole = records["all"]
    print(f"{RECORD.name}: {whole['runs']} runs, median {whole['median_error']:.5%}, worst {whole['worst_error']:+.2%}")


if __name__ == "__main__":
    main()
