"""Rows → a table: records, runs or parts with one column per field, or runs as a two-way table (`grid.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from macros import caption, figures
from macros.amounts import Amount, DiskRow
from macros.citations import Citations, source_key
from macros.columns import Column, bare_table, framed_table, heading_of, names_of, opening, prints, styled
from macros.estimator import units
from macros.grid import grid
from macros.language import Language
from macros.readings import ErrorRow, OutcomeRow, PeerRow, RangeRow, Reading
from macros.records import Record, Simulation, Source
from macros.run import BOUNDS, MeasureRow, MomentRow, PartRow, Run, either, runs_of
from macros.speeds import SpeedRow

_PLAIN_ROWS = (PartRow, MomentRow, MeasureRow, Amount, RangeRow, OutcomeRow, PeerRow, SpeedRow)


def table(
    language: Language,
    rows: Any,
    columns: Sequence[str] | None = None,
    across: str | Sequence[str] | None = None,
    cell: str | Sequence[str] | None = None,
    axis: str | Sequence[str] | None = None,
    sort: str | None = None,
    cited: Citations | None = None,
    told: caption.Told | None = None,
) -> Markup:
    """A whole table with its caption. Either `columns`, or `axis` and `across` with `cell` for runs.

    Raises `ValueError` for rows that are none, for columns that the rows lack, and for axes that leave two runs
    in one cell.
    """
    listed = _listed(rows)
    if (columns is None) == (across is None):
        raise ValueError('table needs either columns=[…], or rows="…", across="…" and cell="…"')
    if columns is not None:
        if axis is not None or cell is not None:
            raise ValueError("columns does not go together with rows and cell")
        return _flat(language, listed, names_of(columns, "columns"), sort, cited, told)
    if sort is not None:
        raise ValueError("sort goes together with columns only; a two-way table has the order of its runs")
    return grid(language, runs_of(listed, "table(…, across=…)"), axis, across, cell, told)


def parts_table(language: Language, run: Run, moment: str | None = None) -> Markup:
    """The parts of one run at one moment as the bare table behind a chart."""
    rows = _visible(run.parts_at(moment))
    columns = [_column(language, rows, name) for name in ("part", "total", "share")]
    return bare_table(language, columns, total=True)


def columns_of_readings(language: Language, rows: Sequence[Reading], names: Sequence[str]) -> list[Column]:
    """Columns of measured runs, for the bare table behind a chart."""
    return [_column(language, list(rows), name) for name in names]


# One row per record, run or part


def _listed(rows: Any) -> list[Any]:
    if isinstance(rows, (Run, Record)):
        return [rows]
    if isinstance(rows, Iterable) and not isinstance(rows, (str, Mapping)):
        return list(rows)
    raise ValueError(f"table takes rows: records, runs or parts; got {rows!r}")


def _flat(
    language: Language,
    rows: list[Any],
    names: list[str],
    sort: str | None,
    cited: Citations | None,
    told: caption.Told | None,
) -> Markup:
    if not rows:
        raise ValueError("there are no rows for this table; the conditions leave nothing")
    if sort is not None:
        rows = _sorted(rows, sort)
    rows = _visible(rows)
    columns = [_column(language, rows, name, cited) for name in names]
    if all(isinstance(row, Run) for row in rows):
        columns[0] = opening(language, columns[0], rows)
    last = rows[-1]
    total = (isinstance(last, PartRow) and not last.part) or (isinstance(last, DiskRow) and not last.purpose)
    note = caption.Note(language, told)
    _explain(note, language, rows, names, columns, total)
    return framed_table(language, columns, note.written(), total=total)


def _visible(rows: list[Any]) -> list[Any]:
    """Rows without the parts that would print as 0,0; they stay in the sum."""
    if not all(isinstance(row, PartRow) for row in rows):
        return rows
    totals = [row.total for row in rows]
    return [row for place, row in enumerate(rows) if prints(totals, place)]


def _columns_of(row: Any) -> tuple[str, ...]:
    if isinstance(row, Record):
        return (*type(row).columns(), "source")
    if isinstance(row, _PLAIN_ROWS):
        return row.COLUMNS
    raise ValueError(f"table takes rows: records, runs or parts; got {row!r}")


def _value(row: Any, name: str) -> Any:
    if isinstance(row, (Run, Reading, ErrorRow)):
        return row.value(name)
    known = _columns_of(row)
    if name not in known:
        kind = "part of a run" if isinstance(row, PartRow) else type(row).__name__
        raise ValueError(f"a {kind} has no column {name!r}{either(name, known)}")
    if name == "verdict" and isinstance(row, MeasureRow):
        return row.verdict or row.run.value("verdict")  # without a card, a sentence that asks for one
    if name == "formula" or (name == "source" and not hasattr(row, "source")):
        return row
    return getattr(row, name)


def _sorted(rows: list[Any], sort: str) -> list[Any]:
    name = sort.removeprefix("-")
    values = [(_value(row, name), row) for row in rows]
    # Records without the value come last in either direction.
    known = [(_sort_key(value), row) for value, row in values if value is not None]
    known.sort(key=lambda pair: pair[0], reverse=sort.startswith("-"))
    return [row for _, row in known] + [row for value, row in values if value is None]


def _sort_key(value: Any) -> Any:
    if figures.is_range(value):
        return value.low
    return value.key if isinstance(value, Record) else value


def _column(language: Language, rows: list[Any], name: str, cited: Citations | None = None) -> Column:
    values = [_value(row, name) for row in rows]
    if name == "source":
        values = [_source(language, row, value, cited) for row, value in zip(rows, values, strict=True)]
    elif name == "formula":
        values = [_formula(language, row) for row in rows]
    elif name == "measure":
        values = [caption.measure(language, row.measure, row.changes) for row in rows]
    elif name in ("part", "purpose"):
        values = [value or None for value in values]
    elif name == "recipe" and isinstance(rows[0], Simulation):
        values = [caption.settings(language, value) for value in values]
    return styled(name, heading_of(language, name), values)


def _source(language: Language, row: Any, value: Any, cited: Citations | None) -> Markup | None:
    if isinstance(row, Source):
        return figures.entry(row)
    if cited is None:
        raise ValueError("there are no sources for this table")
    if isinstance(row, PartRow):
        key = cited.of_part(row)
    else:
        key = value if isinstance(value, str) else source_key(row)
    return figures.cite(language, cited.sources[key]) if key else None


def _formula(language: Language, row: PartRow) -> str | None:
    """How a part comes about: as a product where it is so many whole bytes per parameter, else in words.

    The allocator rounds every tensor up to a block and optimizers keep a step counter for each, so a product counts
    as met up to a thousandth.
    """
    if not row.part:
        return None
    each = units.rounded(row.total, row.count, 0)
    if each == 0 or abs(row.total - each * row.count) * 1000 > row.total:
        return language.text(f"formula.{row.part}")
    count = language.number(row.count)
    if row.part == "optimizer_states" and each % 2 == 0:
        return language.text("formula.states", count=count, bytes=language.bytes(each // 2))
    return language.text("formula.multiple", count=count, bytes=language.bytes(each))


def _explain(
    note: caption.Note, language: Language, rows: list[Any], names: Sequence[str], columns: list[Column], total: bool
) -> None:
    if total and (column := next((column for column in columns if column.name == "total"), None)):
        note.say(*caption.rounding(language, column.values))
    if all(isinstance(row, Run) for row in rows):
        note.repeat(*caption.speed(language, rows, names))
        note.hold_for(rows, names)
    if isinstance(rows[0], Amount):
        note.hold_for_amounts(rows, names)
    if isinstance(rows[0], MeasureRow):
        note.say(language.text("caption.measures"))
        note.hold_for([rows[0].run], ())
    if any(name in BOUNDS for name in names):
        note.repeat(language.text("caption.bounds"))
    if isinstance(rows[0], ErrorRow) or "error" in names:
        note.repeat(language.text("caption.errors"))
    if isinstance(rows[0], RangeRow):
        note.repeat(language.text("caption.ranges"), language.text("caption.nearly_full"))
    if isinstance(rows[0], SpeedRow):
        note.repeat(language.text("caption.speeds"))
    if isinstance(rows[0], PeerRow):
        note.repeat(language.text("caption.peers", date=language.date(max(row.peer.recorded for row in rows))))
    if isinstance(rows[0], Simulation):
        versions = dict(pair for row in rows for pair in row.versions.items())
        named = language.listing(f"{library} {version}" for library, version in versions.items())
        recorded = language.date(max(row.recorded for row in rows))
        note.repeat(language.text("caption.simulation", versions=named, date=recorded))
    if "verdict" in names or isinstance(rows[0], OutcomeRow):
        note.repeat(caption.verdict_limit(language))
    cards = [row.run if isinstance(row, MeasureRow) else row for row in rows]
    note.repeat(*caption.box_figures(language, cards, names))
