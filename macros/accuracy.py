"""Estimates next to the published runs: error per counter, coverage of the ranges, verdicts against outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from macros.dataset import Dataset
from macros.estimator import Estimate, architecture_from_config, estimate, recipe_from_keys
from macros.records import Measurement

COUNTERS = ("allocated", "reserved", "device")
NEARLY_FULL_PERCENT = 95
"""From this share of the card on, the allocator gives cached memory back, so that reserved and driver figures say little."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published run and what the estimator says about it."""

    run: Measurement
    estimate: Estimate
    memory: int | None
    """Bytes of the card, if the source names it."""

    @property
    def error(self) -> float | None:
        """Relative error of the tensor peak, (estimate − measurement) / measurement."""
        measured = self.run.observed.get("allocated")
        return None if measured is None else self.estimate.peak_bytes / measured - 1

    @property
    def nearly_full(self) -> bool:
        """Whether a counter comes within 5 % of all that the card has."""
        most = max((self.run.observed.get(name, 0) for name in COUNTERS), default=0)
        return self.memory is not None and most * 100 > self.memory * NEARLY_FULL_PERCENT

    @property
    def used(self) -> int | None:
        """Bytes in use at the peak: what the driver showed, else the largest other counter."""
        observed = self.run.observed
        return next((observed[name] for name in ("device", "reserved", "unstated", "allocated") if name in observed), None)


def comparison(dataset: Dataset, run: Measurement) -> Comparison | None:
    """A published run beside its estimate, or nothing if its source does not say enough.

    Raises `ValueError` for a recipe that the estimator refuses.
    """
    if run.recipe is None or not (run.model or run.config):
        return None
    memory = dataset.gpus[run.gpu].memory if run.gpu else None
    try:
        # Without a preset: a run has the settings of its own time, all of them in its recipe.
        architecture = architecture_from_config(dataset.models[run.model].config if run.model else run.config)
        result = estimate(architecture, recipe_from_keys(run.recipe), memory)
    except ValueError as error:
        raise ValueError(f"data/measurements.yml, {run.key}: {error}") from None
    return Comparison(run, result, memory)


def comparisons(dataset: Dataset) -> list[Comparison]:
    """Every published run that the estimator can express. Raises `ValueError` for a recipe that it refuses."""
    return [row for run in dataset.measurements if (row := comparison(dataset, run)) is not None]


RESTING = ("weights", "adapters", "optimizer_states", "master_weights")
DOUBTFUL = 0.25
"""A larger error of a run that counts means a wrong figure, unit or recipe: published ones are within half of it."""


def doubt(row: Comparison) -> str | None:
    """What cannot be right in a published run, as a sentence, or nothing."""
    observed = row.run.observed
    values = [observed[name] for name in COUNTERS if name in observed]
    if values != sorted(values):
        return "allocated bytes lie in the reserved ones, and these in what the driver shows, but the figures do not"
    if row.memory is not None and values and values[-1] > row.memory:
        return f"the card has {row.memory} bytes, less than the {values[-1]} that were observed"
    if "allocated" in observed and row.run.counts:
        parts = row.estimate.moments["optimizer_step"].parts
        resting = sum(parts.get(part, 0) for part in RESTING)
        if observed["allocated"] < resting:
            return f"weights, adapters and optimizer states alone are {resting} bytes, more than observed"
        if abs(row.error) > DOUBTFUL:
            return f"the estimate is {row.estimate.peak_bytes} bytes, {row.error:+.0%} from what was observed"
    return None


def counted(rows: Iterable[Comparison]) -> list[Comparison]:
    """Those whose tensor peak is compared."""
    return [row for row in rows if row.run.counts]


def by(rows: Iterable[Comparison], key: Callable[[Comparison], str]) -> dict[str, list[Comparison]]:
    """Rows in groups, in order of appearance."""
    groups: dict[str, list[Comparison]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def framework(row: Comparison) -> str:
    return row.run.software["framework"]


def median_error(rows: Iterable[Comparison]) -> float:
    """Median of the absolute relative errors."""
    return median(abs(row.error) for row in rows)


def share_within(rows: Iterable[Comparison], limit: float) -> float:
    """Share of the rows whose absolute error is at most `limit`."""
    errors = [abs(row.error) for row in rows]
    return sum(error <= limit for error in errors) / len(errors)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a range holds the measured figure, and how wide it is."""

    rows: int
    inside: float
    width: float
    """Mean of (high − low) / middle."""


def coverage(rows: Iterable[Comparison], counter: str) -> Coverage | None:
    """Coverage of the range of "reserved" or "device" over the runs that do not nearly fill their card."""
    pairs = []
    for row in rows:
        if counter in row.run.observed and not row.nearly_full:
            limits = row.estimate.reserved_bytes if counter == "reserved" else row.estimate.device_bytes
            pairs.append((row.run.observed[counter], limits))
    if not pairs:
        return None
    inside = sum(limits.low <= measured <= limits.high for measured, limits in pairs) / len(pairs)
    width = sum(2 * (limits.high - limits.low) / (limits.high + limits.low) for _, limits in pairs) / len(pairs)
    return Coverage(len(pairs), inside, width)


def verdicts(rows: Iterable[Comparison]) -> Counter[tuple[str, str]]:
    """Number of runs by (outcome, verdict); a run that fits counts as "ok"."""
    matrix: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.estimate.verdict is not None:
            matrix[("oom" if row.run.outcome == "oom" else "ok", row.estimate.verdict)] += 1
    return matrix
