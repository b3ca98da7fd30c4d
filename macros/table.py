"""Rows → a table: records, runs or parts with one column per field, or runs as a two-way table.

The unit, the alignment and the decimals of a column follow from its name, so that a column cannot mix styles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Collected
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from markupsafe import Markup, escape

from macros import caption, figures
from macros.citations import Citations, source_key
from macros.estimator import PARTS, units
from macros.estimator.fit import COMFORTABLE_PERCENT
from macros.figures import element, joined
from macros.language import Language, exact, machine
from macros.records import MIB, Gpu, Record, Source
from macros.run import MomentRow, PartRow, Run, either, runs_of

_GB = ("peak", "device", "reserved", "headroom", "memory", "box", "total", "download", "checkpoint", *PARTS)
_UNITS: Mapping[str, str] = {"memory_mib": "unit.mib", "usable_mib": "unit.mib", "bandwidth_gb_s": "unit.gb_per_second",
                             "bf16_tflops": "unit.tflops", "box_gb": "unit.gb"}
_BYTES = ("bytes_per_parameter", "weights_bytes_per_parameter", "total_bytes_per_parameter")
_COUNTS = ("parameters", "trainable_parameters")
_SHARES = ("share", "trainable_share")
_DAYS = ("released", "checked", "published", "accessed")
_OF_CARD = ("memory", "memory_mib", "verdict", "headroom")
_KEYS = ("moment", "step", "part", "evidence")  # columns whose values are keys with a message of their own
_NUMBERS = (*_GB, *_UNITS, *_BYTES, *_COUNTS, *_SHARES, "context_length", "sequence_length", "micro_batch_size",
            "gradient_accumulation_steps", "lora_r", "lora_dropout")


@dataclass(frozen=True)
class Column:
    """One column before it is written: its name, its heading and the raw values from top to bottom."""

    name: str
    heading: str
    values: Sequence[Any]
    written: bool = False
    """Whether the values are HTML already, several values of a run in one cell."""
    numeric: bool = False


def _of(name: str, heading: str, values: Sequence[Any]) -> Column:
    """A column whose style follows from its name."""
    return Column(name, heading, values, numeric=name in _NUMBERS)


def table(
    language: Language,
    rows: Any,
    columns: Sequence[str] | None = None,
    across: str | Sequence[str] | None = None,
    cell: str | Sequence[str] | None = None,
    axis: str | Sequence[str] | None = None,
    sort: str | None = None,
    cited: Citations | None = None,
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
        return _flat(language, listed, _names(columns, "columns"), sort, cited)
    if sort is not None:
        raise ValueError("sort goes together with columns only; a two-way table has the order of its runs")
    return _two_way(language, runs_of(listed, "table(…, across=…)"), axis, across, cell)


def parts_table(language: Language, run: Run, moment: str | None = None) -> Markup:
    """The parts of one run at one moment as the bare table behind a chart."""
    rows = _visible(run.parts_at(moment))
    columns = [_column(language, rows, name) for name in ("part", "total", "share")]
    return _html(language, columns, total=True)


def runs_table(language: Language, runs: Sequence[Run], names: Sequence[str]) -> Markup:
    """The parts of several runs, one column each, as the bare table behind a chart."""
    return _html(language, _part_columns(language, runs, names), total=True)


# One row per record, run or part


def _listed(rows: Any) -> list[Any]:
    if isinstance(rows, (Run, Record)):
        return [rows]
    if isinstance(rows, Iterable) and not isinstance(rows, (str, Mapping)):
        return list(rows)
    raise ValueError(f"table takes rows: records, runs or parts; got {rows!r}")


def _names(given: Any, argument: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} takes one name or a list of names")
    return names


def _flat(
    language: Language, rows: list[Any], names: list[str], sort: str | None, cited: Citations | None
) -> Markup:
    if not rows:
        raise ValueError("there are no rows for this table; the conditions leave nothing")
    if sort is not None:
        rows = _sorted(rows, sort)
    rows = _visible(rows)
    columns = [_column(language, rows, name, cited) for name in names]
    total = isinstance(rows[-1], PartRow) and not rows[-1].part
    lines = _flat_caption(language, rows, names, columns, total)
    return _framed(language, columns, lines, total=total)


def _visible(rows: list[Any]) -> list[Any]:
    """Rows without the parts that would print as 0,0; they stay in the sum."""
    if not all(isinstance(row, PartRow) for row in rows):
        return rows
    totals = [row.total for row in rows]
    return [row for place, row in enumerate(rows) if _prints(totals, place)]


def _columns_of(row: Any) -> tuple[str, ...]:
    if isinstance(row, Run):
        return row.columns
    if isinstance(row, Record):
        return (*type(row).columns(), "source")
    if isinstance(row, (PartRow, MomentRow)):
        return row.COLUMNS
    raise ValueError(f"table takes rows: records, runs or parts; got {row!r}")


def _value(row: Any, name: str) -> Any:
    known = _columns_of(row)
    if isinstance(row, Run):
        return row.value(name)
    if name not in known:
        kind = "part of a run" if isinstance(row, PartRow) else type(row).__name__
        raise ValueError(f"a {kind} has no column {name!r}{either(name, known)}")
    if name in ("formula", "source"):
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
        values = [_source(language, row, cited) for row in rows]
    elif name == "formula":
        values = [_formula(language, row) for row in rows]
    elif name == "part":
        values = [value or None for value in values]
    return _of(name, _heading(language, name), values)


def _heading(language: Language, name: str) -> str:
    return language.text(f"part.{name}" if name in PARTS else f"column.{name}")


def _source(language: Language, row: Any, cited: Citations | None) -> Markup | None:
    if isinstance(row, Source):
        return figures.entry(row)
    if cited is None:
        raise ValueError("there are no sources for this table")
    key = cited.of_part(row) if isinstance(row, PartRow) else source_key(row)
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


def _flat_caption(
    language: Language, rows: list[Any], names: Sequence[str], columns: list[Column], total: bool
) -> list[str]:
    lines = []
    if all(isinstance(row, Run) for row in rows):
        lines += caption.sentences(language, rows, names)
    if "verdict" in names:
        lines.append(_verdict_note(language))
    if total and (column := next((column for column in columns if column.name == "total"), None)):
        lines += _rounding_note(language, column.values)
    return lines + _box_note(language, rows, names)


def _box_note(language: Language, rows: Iterable[Any], names: Collected[str]) -> list[str]:
    """The sentence that names cards whose memory is the vendor's figure, where a column depends on it."""
    if not any(name in _OF_CARD for name in names):
        return []
    cards = (row.gpu if isinstance(row, Run) else row for row in rows)
    boxed = dict.fromkeys(card.name for card in cards if isinstance(card, Gpu) and card.memory_mib_source == "box")
    return [language.text("caption.box", gpus=language.listing(boxed))] if boxed else []


# Runs along two axes


def _two_way(language: Language, runs: list[Run], axis: Any, across: Any, cell: Any) -> Markup:
    if axis is None:
        raise ValueError('a two-way table needs rows="…", the name of the axis down the page')
    down, over = _names(axis, "rows"), _names(across, "across")
    if down == ["part"]:
        if cell is not None:
            raise ValueError('rows="part" shows bytes; leave cell out')
        return _parts_of_runs(language, runs, over)
    if cell is None:
        raise ValueError('a two-way table needs cell="…", the name of the value in its cells')
    cells = _names(cell, "cell")
    for name in (*down, *over, *cells):
        runs[0].value(name)
    placed: dict[tuple[str, ...], dict[tuple[str, ...], Run]] = {}
    heads: dict[tuple[str, ...], str] = {}
    for run in runs:
        line = _place(language, run, down)
        place = _place(language, run, over)
        heads[place] = _head(language, run, over)
        row = placed.setdefault(line, {})
        if place in row:
            where = language.listing((*line, *place))
            raise ValueError(f"rows and across put two runs into one cell ({where}){_telling(row[place], run)}")
        row[place] = run
    columns = [
        Column(name, _heading(language, name), [row[position] for row in placed], numeric=name in _NUMBERS) for position, name in enumerate(down)
    ]
    for place, heading in heads.items():
        in_column = [row.get(place) for row in placed.values()]
        stacked = [_of(name, "", [run and run.value(name) for run in in_column]) for name in cells]
        columns.append(_stack(language, heading, stacked))
    # A badge says itself what it is.
    lines = [] if cells == ["verdict"] else [_cells_note(language, cells)]
    lines += caption.sentences(language, runs, (*down, *over))
    if "verdict" in cells:
        lines.append(_verdict_note(language))
    lines += _box_note(language, runs, cells)
    return _framed(language, columns, lines, headers=len(down))


def _cells_note(language: Language, cells: Sequence[str]) -> str:
    """What the cells of a two-way table show: it stands in no heading."""
    return language.text("caption.cells", cells=language.listing(_heading(language, name) for name in cells))


def _telling(one: Run, other: Run) -> str:
    names = [name for name, value in one.recipe.items() if other.recipe.get(name) != value]
    return f"; name {names[0]!r} in rows or across" if names else "; they are the same run"


def _place(language: Language, run: Run, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(caption.axis_text(language, run, name) for name in names)


def _head(language: Language, run: Run, names: Sequence[str]) -> str:
    """The heading of a run's column: a number or a yes is worth its name, `Sequenzlänge 2048`."""
    return " · ".join(caption.heading_text(language, run, name) for name in names)


def _stack(language: Language, heading: str, columns: Sequence[Column]) -> Column:
    """Several values per cell, one below the other, as one column of finished cells."""
    written = [_cells(language, column) for column in columns]
    cells = [Markup("<br>").join(parts) for parts in zip(*written, strict=True)]
    return Column("", heading, cells, written=True, numeric=all(column.numeric for column in columns))


def _parts_of_runs(language: Language, runs: list[Run], over: Sequence[str]) -> Markup:
    names = [_head(language, run, over) for run in runs]
    if len(set(names)) < len(names):
        raise ValueError(f"across puts two runs into one column{_telling(runs[0], runs[1])}")
    columns = _part_columns(language, runs, names)
    lines = [language.text("caption.cells", cells=language.text("caption.parts_at_peak"))]
    lines += caption.sentences(language, runs, over)
    rounded = any(_rounding_note(language, [value for value in column.values if value is not None])
                  for column in columns[1:])
    if rounded:
        lines.append(language.text("caption.rounded"))
    return _framed(language, columns, lines, total=True)


def _part_columns(language: Language, runs: Sequence[Run], names: Sequence[str]) -> list[Column]:
    parts = [part for part in PARTS if any(run.part(part) for run in runs)]
    columns = [_of("total", name, [*(run.part(part) or None for part in parts), run.peak])
               for name, run in zip(names, runs, strict=True)]
    # A row that would print as 0,0 everywhere says nothing; its part stays in the sum.
    seen = [place for place in range(len(parts)) if any(_prints(column.values, place) for column in columns)]
    first = _of("part", _heading(language, "part"), [*(parts[place] for place in seen), None])
    kept = [replace(column, values=[*(column.values[place] for place in seen), column.values[-1]]) for column in columns]
    return [first, *kept]


def _prints(values: Sequence[int | None], place: int) -> bool:
    """Whether an amount of a column is more than zero after rounding."""
    decimals = units.gb_column_decimals([value for value in values if value is not None])
    return units.rounded(values[place] or 0, units.GB, decimals) > 0


# From values to HTML


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
            machine(exact(value)), language.text(_UNITS[name], number=language.number(exact(value))))
    if name in _BYTES:
        places = 0 if all(abs(value - round(value)) < Fraction(1, 200) for value in column.values if value is not None) else 2
        return lambda value: figures.figure(machine(exact(value)), language.number(exact(value), places))
    if name in _SHARES:
        return lambda value: figures.percent(language, value)
    if name in _COUNTS:
        return lambda value: figures.count(language, value)
    if name in _DAYS:
        return lambda value: escape(language.moment(str(value)))
    if name == "verdict":
        return lambda value: figures.verdict(language, value)
    if name in _KEYS:
        prefix = "moment" if name == "step" else name
        return lambda value: escape(language.text(f"{prefix}.{value}"))
    return lambda value: escape(caption.value_text(language, name, value))


def _ends(value: Any) -> tuple[int, ...]:
    return (value.low, value.high) if figures.is_range(value) else (figures.byte_count(value),)


def _rounding_note(language: Language, values: Sequence[int]) -> list[str]:
    """The sentence that says so, if the printed parts do not give the printed sum (the last value)."""
    *parts, total = values
    decimals = units.gb_column_decimals(list(values))
    printed = sum(units.rounded(part, units.GB, decimals) for part in parts)
    return [] if printed == units.rounded(total, units.GB, decimals) else [language.text("caption.rounded")]


def _verdict_note(language: Language) -> str:
    return language.text("caption.verdict", limit=language.percent(Fraction(COMFORTABLE_PERCENT, 100)))


def _html(language: Language, columns: Sequence[Column], total: bool = False, headers: int = 1) -> Markup:
    """A bare table; the first `headers` columns head their rows, `total` marks the last row as the sum."""
    head = joined(
        element("th", column.heading, scope="col", class_="vg-num" if column.numeric else None) for column in columns
    )
    written = [_cells(language, column) for column in columns]
    rows = list(zip(*written, strict=True))
    body = []
    for number, cells in enumerate(rows):
        last = total and number == len(rows) - 1
        if last and columns[0].name == "part":
            cells = (escape(language.text("column.sum")), *cells[1:])
        body.append(element("tr", joined(_html_cell(columns, place, cell, headers) for place, cell in enumerate(cells)),
                            class_="vg-total" if last else None))
    return element("table", element("thead", element("tr", head)) + element("tbody", joined(body)), class_="vg-data")


def _html_cell(columns: Sequence[Column], place: int, cell: Markup, headers: int) -> Markup:
    if place < headers:
        return element("th", cell, scope="row")
    return element("td", cell, class_="vg-num" if columns[place].numeric else None)


def _framed(
    language: Language, columns: Sequence[Column], lines: Sequence[str], total: bool = False, headers: int = 1
) -> Markup:
    """A table that scrolls inside itself, its caption below."""
    label = language.text("table.label", columns=language.listing(column.heading for column in columns))
    table = _html(language, columns, total, headers)
    scroll = element("div", table, class_="vg-scroll", tabindex="0", role="region", aria_label=label)
    note = element("figcaption", " ".join(lines), class_="vg-caption") if lines else Markup()
    return element("figure", scroll + note, class_="vg-table")
