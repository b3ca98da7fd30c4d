"""Amounts of a run beside its step: peaks outside the step, the host's memory, disk space; by name, and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from macros.findings import suggest


@dataclass(frozen=True)
class Amount:
    """One amount of a run in bytes."""

    run: Any = field(repr=False)
    total: int

    COLUMNS: ClassVar[tuple[str, ...]] = ()
    CAPTION: ClassVar[str] = ""
    EVIDENCE: ClassVar[str] = "caption.evidence.code"


@dataclass(frozen=True)
class EventRow(Amount):
    """A peak of the card outside the training step, against the step's own."""

    event: str
    of_peak: Fraction
    exceeds: bool

    COLUMNS = ("event", "total", "of_peak", "exceeds")
    CAPTION = "caption.events"
    EVIDENCE = "caption.evidence.events"


@dataclass(frozen=True)
class HostRow(Amount):
    """The host's memory on one occasion."""

    occasion: str

    COLUMNS = ("occasion", "total")
    CAPTION = "caption.host"


@dataclass(frozen=True)
class DiskRow(Amount):
    """Disk space for one purpose; `purpose` is empty in the row of the sum."""

    purpose: str

    COLUMNS = ("purpose", "total")
    CAPTION = "caption.disk"


NAMES = ("event", "occasion", "purpose")
"""Columns with the name of an amount; messages are `event.load` and so on."""


class Amounts:
    """Amounts by name (`run.disk.download`) that are also the rows of a table (`table(run.disk, columns=[…])`)."""

    def __init__(self, sizes: Mapping[str, int], rows: Iterable[Amount]) -> None:
        self._sizes, self._rows = sizes, tuple(rows)

    def __iter__(self) -> Iterator[Amount]:
        return iter(self._rows)

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._sizes:
            near = suggest(name, self._sizes) or f"; it has {', '.join(self._sizes)}"
            raise ValueError(f"this run has no amount {name!r}{near}")
        return self._sizes[name]
