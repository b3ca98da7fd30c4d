"""Published speeds beside the ranges that the guide gives for such runs, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from macros.dataset import Dataset
from macros.records import Gpu, Throughput
from macros.recipes import estimate_keys


@dataclass(frozen=True)
class SpeedRow:
    """How often the range of a card holds the speeds that were published for it.

    inside   share of the runs whose speed is within the range
    factor   by which the farthest of the others is above or below it; 1 if there is none
    """

    gpu: Gpu
    runs: int
    inside: float
    factor: float

    COLUMNS = ("gpu", "runs", "inside", "factor")


def speeds_of(dataset: Dataset, runs: Iterable[Throughput]) -> list[SpeedRow]:
    """One row per card, the one with most runs first. Raises `ValueError` for a run that has no range."""
    factors: dict[str, list[float]] = {}
    for run in runs:
        factors.setdefault(run.gpu, []).append(_factor(dataset, run))
    rows = [
        SpeedRow(dataset.gpus[gpu], len(found), sum(factor == 1 for factor in found) / len(found), max(found))
        for gpu, found in factors.items()
    ]
    return sorted(rows, key=lambda row: -row.runs)


def _factor(dataset: Dataset, run: Throughput) -> float:
    shape = {"model": run.model} if run.model else {"config": run.config}
    # Without a preset: a run has the settings of its own time, all of them in its recipe.
    rate = estimate_keys(dataset, {"gpu": run.gpu, **shape, **run.recipe}).tokens_per_second
    if rate is None:
        raise ValueError(f"data/throughputs.yml, {run.key}: data/utilisations.yml has no range for such a run")
    return max(1, rate.low / run.tokens_per_second, run.tokens_per_second / rate.high)
