"""Runs along two axes → a table: models × methods, models × cards, or the parts of each run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from macros import caption
from macros.columns import Column, bare_table, framed_table, heading_of, names_of, opening, prints, stack, styled
from macros.estimator import PARTS
from macros.language import Language
from macros.run import BOUNDS, Run


def grid(
    language: Language, runs: list[Run], axis: Any, across: Any, cell: Any, told: caption.Told | None = None
) -> Markup:
    """Runs with the keys of `axis` down the page, those of `across` along it and the values `cell` where they meet.

    With `axis` "part" the rows are the parts at each run's peak. Raises `ValueError` where two runs meet in one cell.
    """
    if axis is None:
        raise ValueError('a two-way table needs rows="…", the name of the axis down the page')
    down, over = names_of(axis, "rows"), names_of(across, "across")
    if down == ["part"]:
        if cell is not None:
            raise ValueError('rows="part" shows bytes; leave cell out')
        return _parts_of_runs(language, runs, over, told)
    if cell is None:
        raise ValueError('a two-way table needs cell="…", the name of the value in its cells')
    cells = names_of(cell, "cell")
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
        styled(name, heading_of(language, name), [row[position] for row in placed])
        for position, name in enumerate(down)
    ]
    columns[-1] = opening(language, columns[-1], [next(iter(row.values())) for row in placed.values()])
    for place, heading in heads.items():
        in_column = [row.get(place) for row in placed.values()]
        stacked = [styled(name, "", [run and run.value(name) for run in in_column]) for name in cells]
        columns.append(stack(language, heading, stacked))
    note = caption.Note(language, told)
    if cells != ["verdict"]:  # a badge says itself what it is
        note.say(_cells_note(language, cells))
    note.repeat(*caption.speed(language, runs, cells))
    note.hold_for(runs, (*down, *over))
    if any(name in BOUNDS for name in cells):
        note.repeat(language.text("caption.bounds"))
    if "verdict" in cells:
        note.repeat(caption.verdict_limit(language))
    note.repeat(*caption.box_figures(language, runs, cells))
    return framed_table(language, columns, note.written(), headers=len(down))


def _cells_note(language: Language, cells: Sequence[str]) -> str:
    """What the cells of a two-way table show: it stands in no heading."""
    return language.text("caption.cells", cells=language.listing(heading_of(language, name) for name in cells))


def _telling(one: Run, other: Run) -> str:
    names = [name for name, value in one.recipe.items() if other.recipe.get(name) != value]
    return f"; name {names[0]!r} in rows or across" if names else "; they are the same run"


def _place(language: Language, run: Run, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(caption.axis_text(language, run, name) for name in names)


def _head(language: Language, run: Run, names: Sequence[str]) -> str:
    """The heading of a run's column: a number or a yes is worth its name, `Sequenzlänge 2048`."""
    return " · ".join(caption.heading_text(language, run, name) for name in names)


def _parts_of_runs(language: Language, runs: list[Run], over: Sequence[str], told: caption.Told | None) -> Markup:
    names = [_head(language, run, over) for run in runs]
    if len(set(names)) < len(names):
        raise ValueError(f"across puts two runs into one column{_telling(runs[0], runs[1])}")
    columns = _part_columns(language, runs, names)
    note = caption.Note(language, told)
    note.say(language.text("caption.cells", cells=language.text("caption.parts_at_peak")))
    rounded = any(
        caption.rounding(language, [value for value in column.values if value is not None]) for column in columns[1:]
    )
    if rounded:
        note.say(language.text("caption.rounded"))
    note.hold_for(runs, over)
    return framed_table(language, columns, note.written(), total=True)


def _part_columns(language: Language, runs: Sequence[Run], names: Sequence[str]) -> list[Column]:
    parts = [part for part in PARTS if any(run.part(part) for run in runs)]
    columns = [
        styled("total", name, [*(run.part(part) or None for part in parts), run.peak])
        for name, run in zip(names, runs, strict=True)
    ]
    # A row that would print as 0,0 everywhere says nothing; its part stays in the sum.
    seen = [place for place in range(len(parts)) if any(prints(column.values, place) for column in columns)]
    first = styled("part", heading_of(language, "part"), [*(parts[place] for place in seen), None])
    kept = [
        replace(column, values=[*(column.values[place] for place in seen), column.values[-1]]) for column in columns
    ]
    return [first, *kept]


def runs_table(language: Language, runs: Sequence[Run], names: Sequence[str]) -> Markup:
    """The parts of several runs, one column each, as the bare table behind a chart."""
    return bare_table(language, _part_columns(language, runs, names), total=True)
