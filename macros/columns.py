"""Values of one kind → a column in one style, and columns → the HTML of a table.

The unit, the alignment and the decimals of a column follow from its name, so that a column cannot mix styles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup, escape

from macros import amounts, calculator, caption, figures
from macros.estimator import PARTS, units
from macros.figures import element, joined
from macros.language import Language, exact, machine
from macros.run import BOUNDS

_OBSERVED = ("observed_allocated", "observed_reserved", "observed_device", "observed_unstated")
_GB = (
    "peak",
    "per_gpu",
    "all_gpus",
    "device",
    "reserved",
    *_OBSERVED,
    "headroom",
    "saving",
    "alone",
    "memory",
    "box",
    "total",
    "download",
    "checkpoint",
    "host_peak",
    "disk_total",
    "communication",
    *PARTS,
)
_UNITS: Mapping[str, str] = {
    "memory_mib": "unit.mib",
    "usable_mib": "unit.mib",
    "bandwidth_gb_s": "unit.gb_per_second",
    "bf16_tflops": "unit.tflops",
    "box_gb": "unit.gb",
}
_BYTES = ("bytes_per_parameter", "weights_bytes_per_parameter", "total_bytes_per_parameter")
_COUNTS = ("parameters", "trainable_parameters")
_SHARES = ("low", "high", "share", "of_peak", "trainable_share", "within_2", "within_12", "inside", "width")
_SIZES = ("median_error", "p95_error", "our_median_error")  # errors of many runs, whatever their direction
_SIGNED = ("error", "worst_error", "our_worst_error")
_TALLIES = ("runs", "compared", "refused", "comfortable", "tight", "does_not_fit", "right_moment")
_DAYS = ("released", "checked", "published", "accessed")
_KEYS = (
    "moment",
    "step",
    "part",
    "evidence",
    "price",
    *amounts.NAMES,
)  # columns whose values are keys with a message of their own
_SUMMED = ("part", "purpose")  # columns whose last row, without a name, is the sum
_ESTIMATED = {"tokens_per_second": figures.rate, "duration": figures.duration, "cost": figures.estimated}  # ranges
_NUMBERS = (
    *_ESTIMATED,
    *_GB,
    *_UNITS,
    *_BYTES,
    *_COUNTS,
    *_SHARES,
    *_SIZES,
    *_SIGNED,
    *_TALLIES,
    "factor",
    "context_length",
    "sequence_length",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "lora_r",
    "lora_dropout",
    "trained_token_share",
    "num_gpus",
    "fsdp_version",
    "num_generations",
    "prompt_length",
    "vllm_memory_share",
    *BOUNDS,
)


@dataclass(frozen=True)
class Column:
    """One column before it is written: its name, its heading and the raw values from top to bottom."""

    name: str
    heading: str
    values: Sequence[Any]
    written: bool = False
    """Whether the values are HTML already, several values of a run in one cell."""
    numeric: bool = False


def styled(name: str, heading: str, values: Sequence[Any]) -> Column:
    """A column whose style follows from its name."""
    return Column(name, heading, values, numeric=name in _NUMBERS)


def names_of(given: Any, argument: str) -> list[str]:
    """One name or several, as an argument of a table. Raises `ValueError` for anything else."""
    names = [given] if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} takes one name or a list of names")
    return names


def heading_of(language: Language, name: str) -> str:
    return language.text(f"part.{name}" if name in PARTS else f"column.{name}")


def stack(language: Language, heading: str, columns: Sequence[Column]) -> Column:
    """Several values per cell, one below the other, as one column of finished cells."""
    written = [_cells(language, column) for column in columns]
    cells = [Markup("<br>").join(parts) for parts in zip(*written, strict=True)]
    return Column("", heading, cells, written=True, numeric=all(column.numeric for column in columns))


def opening(language: Language, column: Column, runs: Sequence[Any]) -> Column:
    """The column that heads the rows, with a link to the calculator in each: `runs` are the recipes, one per row."""
    cells = [
        cell + calculator.link(language, run.keys, cell.striptags()) if "config" not in run.keys else cell
        for cell, run in zip(_cells(language, column), runs, strict=True)
    ]
    return Column(column.name, column.heading, cells, written=True, numeric=column.numeric)


def prints(values: Sequence[int | None], place: int) -> bool:
    """Whether an amount of a column is more than zero after rounding."""
    decimals = units.gb_column_decimals([value for value in values if value is not None])
    return units.rounded(values[place] or 0, units.GB, decimals) > 0


def _cells(language: Language, column: Column) -> list[Markup]:
    """Every value of a column in one style: for amounts in GB with the decimals of the largest."""
    if column.written:
        return list(column.values)
    write = _writer(language, column)
    return [_cell(language, value, write) for value in column.values]


def _cell(language: Language, value: Any, write: Callable[[Any], Markup]) -> Markup:
    if isinstance(value, Markup):
        return value
    if value is None:
        return element("span", language.text("value.none"), class_="vg-none")
    return write(value)


def _writer(language: Language, column: Column) -> Callable[[Any], Markup]:
    name = column.name
    if name in _GB:
        ends = [end for value in column.values if value is not None for end in _ends(value)]
        decimals = units.gb_column_decimals(ends)
        return lambda value: figures.gb(language, value, decimals)
    if name in _UNITS:
        return lambda value: figures.figure(
            machine(exact(value)), language.text(_UNITS[name], number=language.number(exact(value)))
        )
    if name in _BYTES:
        places = (
            0
            if all(abs(value - round(value)) < Fraction(1, 200) for value in column.values if value is not None)
            else 2
        )
        return lambda value: figures.figure(machine(exact(value)), language.number(exact(value), places))
    if name in _SHARES:
        return lambda value: figures.percent(language, value)
    if name in _SIZES or name in _SIGNED:
        return lambda value: figures.deviation(language, value, name in _SIGNED)
    if name == "factor":
        return lambda value: figures.number(language, value, 2)
    if name in _TALLIES:
        return lambda value: figures.number(language, value)
    if name in _COUNTS:
        return lambda value: figures.count(language, value)
    if name in _DAYS:
        return lambda value: escape(language.moment(str(value)))
    if name in _ESTIMATED:
        return lambda value: _ESTIMATED[name](language, value)
    if name == "verdict":
        return lambda value: figures.verdict(language, value)
    if name in _KEYS:
        prefix = "moment" if name == "step" else name
        return lambda value: escape(language.text(f"{prefix}.{value}"))
    return lambda value: escape(caption.value_text(language, name, value))


def _ends(value: Any) -> tuple[int, ...]:
    return (value.low, value.high) if figures.is_range(value) else (figures.byte_count(value),)


def bare_table(language: Language, columns: Sequence[Column], total: bool = False, headers: int = 1) -> Markup:
    """A bare table; the first `headers` columns head their rows, `total` marks the last row as the sum."""
    head = joined(
        element("th", column.heading, scope="col", class_="vg-num" if column.numeric else None) for column in columns
    )
    written = [_cells(language, column) for column in columns]
    rows = list(zip(*written, strict=True))
    body = []
    for number, cells in enumerate(rows):
        last = total and number == len(rows) - 1
        if last and columns[0].name in _SUMMED:
            cells = (escape(language.text("column.sum")), *cells[1:])
        body.append(
            element(
                "tr",
                joined(_html_cell(columns, place, cell, headers) for place, cell in enumerate(cells)),
                class_="vg-total" if last else None,
            )
        )
    return element("table", element("thead", element("tr", head)) + element("tbody", joined(body)), class_="vg-data")


def _html_cell(columns: Sequence[Column], place: int, cell: Markup, headers: int) -> Markup:
    if place < headers:
        return element("th", cell, scope="row")
    return element("td", cell, class_="vg-num" if columns[place].numeric else None)


def framed_table(
    language: Language, columns: Sequence[Column], note: Markup, total: bool = False, headers: int = 1
) -> Markup:
    """A table that scrolls inside itself, its caption below."""
    label = language.text("table.label", columns=language.listing(column.heading for column in columns))
    table = bare_table(language, columns, total, headers)
    scroll = element("div", table, class_="vg-scroll", tabindex="0", role="region", aria_label=label)
    below = element("figcaption", note, class_="vg-caption") if note else Markup()
    return element("figure", scroll + below, class_="vg-table")
