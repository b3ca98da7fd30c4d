"""Measured runs beside their estimates as rows for tables and charts: single runs, errors of groups, ranges, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

from macros import accuracy
from macros.accuracy import Comparison
from macros.dataset import Collection, Dataset
from macros.estimator import Recipe
from macros.records import Gpu, Measurement, Model, Peer
from macros.run import either

OUTCOMES = ("ok", "oom")
VERDICTS = ("comfortable", "tight", "does_not_fit")
COUNTERS = ("allocated", "reserved", "device")
_OF_RUN = ("framework", "model_code", "length", "outcome", "reason", "num_gpus")
_RECIPE = tuple(field.name for field in fields(Recipe))


@dataclass(frozen=True)
class Reading:
    """One measured run, and what the estimator says about it if it can express the run."""

    run: Measurement
    model: Model | None
    gpu: Gpu | None
    compared: Comparison | None

    COLUMNS = (
        *("name", "model", "gpu", "framework", "model_code", "software", "year", "length", "outcome", "reason", "source"),
        *("peak", "reserved", "device", "verdict", "error"),
        *("observed_allocated", "observed_reserved", "observed_device", "observed_unstated"),
        *_RECIPE,
    )

    def value(self, column: str) -> Any:
        """The value of a column: estimates under the names that a run has, measured bytes as `observed_…`."""
        if column not in self.COLUMNS:
            raise ValueError(f"a measured run has no column {column!r}{either(column, self.COLUMNS)}")
        if column.startswith("observed_"):
            return self.run.observed.get(column.removeprefix("observed_"))
        if column in _OF_RUN:
            return getattr(self.run, column)
        if column in _RECIPE:
            return self.compared.estimate.conditions[column] if self.compared else (self.run.recipe or {}).get(column)
        return getattr(self, column)

    @property
    def source(self) -> str:
        return self.run.source

    @property
    def name(self) -> str:
        """The model, as its record or else its source names it."""
        return self.model.name if self.model else str(self.run.hub).split("/")[-1]

    @property
    def software(self) -> str:
        """The versions that decide: of the framework's own code, or of the libraries behind it."""
        versions = self.run.software
        own = ("framework", "commit", "torch") if self.run.model_code == "own" else ("transformers", "torch")
        named = [versions[name] if name == "framework" else f"{name} {versions[name]}" for name in own if name in versions]
        return ", ".join(named) or self.run.framework

    @property
    def year(self) -> int:
        return int(self.run.date[:4])

    @property
    def peak(self) -> int | None:
        return self.compared and self.compared.estimate.peak_bytes

    @property
    def reserved(self) -> Any:
        return self.compared and self.compared.estimate.reserved_bytes

    @property
    def device(self) -> Any:
        return self.compared and self.compared.estimate.device_bytes

    @property
    def verdict(self) -> str | None:
        return self.compared and self.compared.estimate.verdict

    @property
    def error(self) -> float | None:
        """Of the tensor peak, (estimate − measurement) / measurement."""
        return self.compared and self.compared.error


@dataclass(frozen=True)
class ErrorRow:
    """Errors of the tensor peak over a group of runs; `group` is what they have in common, under the name `by`."""

    by: str
    group: Any
    readings: tuple[Reading, ...]

    COLUMNS = ("runs", "compared", "median_error", "within_2", "within_12", "worst_error")

    def value(self, column: str) -> Any:
        if column == self.by:
            return self.group
        if column not in self.COLUMNS:
            raise ValueError(f"a group of runs has no column {column!r}{either(column, (self.by, *self.COLUMNS))}")
        return getattr(self, column)

    @property
    def errors(self) -> list[float]:
        return [reading.error for reading in self.readings if reading.error is not None]

    @property
    def runs(self) -> int:
        return len(self.readings)

    @property
    def compared(self) -> int:
        """Runs whose allocated bytes are known beside an estimate."""
        return len(self.errors)

    @property
    def median_error(self) -> float | None:
        return median(map(abs, self.errors)) if self.errors else None

    def within(self, limit: float) -> float | None:
        """Share of the compared runs whose error is at most `limit` in either direction."""
        errors = self.errors
        return sum(abs(error) <= limit for error in errors) / len(errors) if errors else None

    @property
    def within_2(self) -> float | None:
        return self.within(0.02)

    @property
    def within_12(self) -> float | None:
        return self.within(0.12)

    @property
    def worst_error(self) -> float | None:
        return max(self.errors, key=abs, default=None)


@dataclass(frozen=True)
class RangeRow:
    """How often the range of a counter holds what was measured, how wide it is, and how far off its middle."""

    counter: str
    runs: int
    inside: float
    width: float
    median_error: float
    worst_error: float

    COLUMNS = ("counter", "runs", "inside", "width", "median_error", "worst_error")


@dataclass(frozen=True)
class OutcomeRow:
    """How many runs with one outcome got which verdict."""

    outcome: str
    comfortable: int
    tight: int
    does_not_fit: int

    COLUMNS = ("outcome", *VERDICTS, "runs")

    @property
    def runs(self) -> int:
        return self.comfortable + self.tight + self.does_not_fit


@dataclass(frozen=True)
class PeerRow:
    """Another tool and the guide over the same runs: those that the tool can express."""

    peer: Peer
    theirs: tuple[float, ...]
    ours: tuple[float, ...]

    COLUMNS = ("name", "version", "how", "runs", "median_error", "worst_error", "our_median_error", "our_worst_error", "source")

    name = property(lambda self: self.peer.name)
    version = property(lambda self: self.peer.version)
    how = property(lambda self: self.peer.how)
    source = property(lambda self: self.peer.source)
    runs = property(lambda self: len(self.theirs))
    median_error = property(lambda self: median(map(abs, self.theirs)))
    worst_error = property(lambda self: max(self.theirs, key=abs))
    our_median_error = property(lambda self: median(map(abs, self.ours)))
    our_worst_error = property(lambda self: max(self.ours, key=abs))


def readings(dataset: Dataset, runs: Iterable[Measurement], compare: Callable[[Measurement], Comparison | None]) -> list[Reading]:
    """The runs beside their estimates; `compare` gives nothing for a run that the estimator cannot express."""
    return [
        Reading(
            run,
            dataset.models[run.model] if run.model else None,
            dataset.gpus[run.gpu] if run.gpu else None,
            compare(run),
        )
        for run in runs
    ]


def errors_of(rows: Sequence[Reading], by: str) -> list[ErrorRow]:
    """One row per value of a column, the largest group first; runs without a value form no group."""
    groups: dict[Any, list[Reading]] = {}
    for reading in rows:
        value = reading.value(by)
        if value is not None:
            groups.setdefault(getattr(value, "key", value), []).append(reading)
    made = [ErrorRow(by, group[0].value(by), tuple(group)) for group in groups.values()]
    return sorted(made, key=lambda row: -row.runs)


def ranges_of(rows: Sequence[Reading]) -> list[RangeRow]:
    """The counters whose figure is a range. Runs that nearly fill their card are left out: they say little there."""
    found = []
    compared = [reading.compared for reading in rows if reading.compared]
    for counter in ("reserved", "device"):
        covered = accuracy.coverage(compared, counter)
        if covered is None:
            continue
        off = []
        for row in compared:
            if counter in row.run.observed and not row.nearly_full:
                limits = row.estimate.reserved_bytes if counter == "reserved" else row.estimate.device_bytes
                off.append((limits.low + limits.high) / 2 / row.run.observed[counter] - 1)
        found.append(
            RangeRow(counter, covered.rows, covered.inside, covered.width, median(map(abs, off)), max(off, key=abs))
        )
    return found


def outcomes_of(rows: Sequence[Reading]) -> list[OutcomeRow]:
    """Verdict × outcome over the runs whose card and recipe are known."""
    matrix = accuracy.verdicts(reading.compared for reading in rows if reading.compared)
    return [OutcomeRow(outcome, *(matrix[outcome, verdict] for verdict in VERDICTS)) for outcome in OUTCOMES]


def largest_of(rows: Sequence[Reading], count: int) -> list[Reading]:
    """The runs with the largest errors, worst first."""
    off = [reading for reading in rows if reading.error is not None]
    return sorted(off, key=lambda reading: -abs(reading.error))[:count]


def peers_of(rows: Sequence[Reading], peers: Collection[Peer]) -> list[PeerRow]:
    """Every other tool over those of the runs that it can express, best first."""
    found = []
    for peer in peers:
        pairs = [
            (estimate / reading.run.observed["allocated"] - 1, reading.error)
            for reading in rows
            if reading.error is not None and (estimate := peer.estimates.get(reading.run.key)) is not None
        ]
        if pairs:
            theirs, ours = zip(*pairs, strict=True)
            found.append(PeerRow(peer, theirs, ours))
    return sorted(found, key=lambda row: row.median_error)
