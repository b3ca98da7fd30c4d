"""What lies beyond one estimate: what to change first, how far a recipe can be stretched, what a card can train.

`python -m macros capacity --gpu rtx-4090` lists models and methods; for one model and one method it says more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from macros.dataset import Dataset, load
from macros.estimator import Estimate
from macros.estimator import advice as estimator_advice
from macros.estimator import capacity as estimator_capacity
from macros.estimator.advice import Advice, Measure
from macros.estimator.capacity import Bound
from macros.estimator.recipe import METHODS
from macros.findings import DataErrors
from macros.options import Parser, add_recipe_options, recipe_keys
from macros.recipes import estimate_keys, question

ROOT = Path(__file__).parent.parent
VERDICTS = {"comfortable": "fits comfortably", "tight": "tight", "does_not_fit": "does not fit"}
BOUNDS = ("longest_sequence", "largest_batch", "largest_rank", "smallest_number")


def advice(dataset: Dataset, keys: Mapping[str, Any], alone: bool = True) -> Advice:
    """What to change first, for the keys of `estimate_keys`. Raises `ValueError`, one sentence."""
    asked = question(dataset, keys)
    return estimator_advice.advise(asked.architecture, asked.recipe, asked.memory, asked.prepare_kbit, alone)


def bound(dataset: Dataset, keys: Mapping[str, Any], name: str) -> Bound | None:
    """How far one of BOUNDS can go on the card of the keys; None for the rank in full fine-tuning."""
    asked = question(dataset, keys)
    if asked.memory is None:
        raise ValueError("gpu is missing; it is a key of data/gpus.yml")
    if name == "longest_sequence":
        return estimator_capacity.longest_sequence(asked.architecture, asked.recipe, asked.memory, asked.context)
    if name == "largest_batch":
        return estimator_capacity.largest_batch(asked.architecture, asked.recipe, asked.memory)
    if name == "smallest_number":
        return estimator_capacity.smallest_number(asked.architecture, asked.recipe, asked.memory)
    return estimator_capacity.largest_rank(asked.architecture, asked.recipe, asked.memory)


def capacity(
    dataset: Dataset, keys: Mapping[str, Any], models: Sequence[str], methods: Sequence[str] = METHODS
) -> list[dict[str, Any]]:
    """Each model with each method on the card of the keys, as `python -m macros capacity --json` prints it."""
    rows = []
    for model in models:
        for method in methods:
            given = {**estimator_advice.changed(dict(keys), {"method": method}), "model": model}
            found = estimate_keys(dataset, given)
            longest = bound(dataset, given, "longest_sequence")
            rows.append(
                {
                    "model": model,
                    "method": method,
                    "peak_bytes": found.peak_bytes,
                    "verdict": found.verdict,
                    "headroom_bytes": found.headroom_bytes,
                    "longest_sequence": asdict(longest) if longest else None,
                }
            )
    return rows


def readable_advice(found: Estimate, advised: Advice) -> str:
    """What to change first, as text for a terminal."""
    rows = [("", "saves", "alone", "peak", "")]
    rows.append(("as it is", "", "", _gb(advised.peak_bytes), VERDICTS.get(found.verdict or "", "")))
    for measure in advised.measures:
        alone = _gb(measure.alone_bytes) if measure.alone_bytes is not None else ""
        verdict = VERDICTS.get(measure.verdict or "", "")
        rows.append((_changes(measure), _gb(measure.saving_bytes), alone, _gb(measure.peak_bytes), verdict))
    return _aligned(rows)


def main(arguments: Sequence[str]) -> int:
    """Carry out `capacity`. Returns 0, 1 for mistakes in the data, 2 for a wrong call."""
    parser = Parser(prog="python -m macros capacity", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_recipe_options(parser)
    options = parser.parse_args(arguments)
    try:
        dataset = load(ROOT)
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    try:
        keys = recipe_keys(options)
        if keys.get("gpu") is None:
            raise ValueError("gpu is missing; it is a key of data/gpus.yml")
        answer = _answer(dataset, keys)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(answer, indent=2) if options.json else _readable(answer))
    return 0


def _answer(dataset: Dataset, keys: Mapping[str, Any]) -> Any:
    """Rows of models and methods, or the bounds of the one recipe that is named."""
    if ("model" in keys or "config" in keys) and "method" in keys:
        found = {name: bound(dataset, keys, name) for name in BOUNDS}
        return {name: asdict(one) if one else None for name, one in found.items()}
    if "config" in keys:
        raise ValueError("with a config, name the method too")
    models = [keys["model"]] if "model" in keys else [model.key for model in dataset.models if not model.history]
    return capacity(dataset, keys, models, [keys["method"]] if "method" in keys else METHODS)


def _readable(answer: Any) -> str:
    if isinstance(answer, dict):
        rows = [("", "fits comfortably", "fits at all")]
        for name, one in answer.items():
            if one is not None:
                rows.append((name, *(_amount(one, verdict) for verdict in ("comfortable", "tight"))))
        return _aligned(rows)
    rows = [("model", "method", "verdict", "headroom", "longest comfortable", "longest at all")]
    for row in answer:
        longest = row["longest_sequence"]
        rows.append(
            (
                row["model"],
                row["method"],
                VERDICTS[row["verdict"]],
                _gb(row["headroom_bytes"]),
                _amount(longest, "comfortable"),
                _amount(longest, "tight"),
            )
        )
    return _aligned(rows)


def _amount(one: Mapping[str, int], verdict: str) -> str:
    return f"{one[verdict]:,}" if one[verdict] else "none"


def _changes(measure: Measure) -> str:
    """A measure as what to type: --loss chunked; of another method only what names it."""
    keys = ("method",) if "method" in measure.changes else tuple(measure.changes)
    return " ".join(f"--{key.replace('_', '-')} {_typed(measure.changes[key])}" for key in keys)


def _typed(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
