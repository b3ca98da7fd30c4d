"""Estimates against measurements → a dot chart as inline SVG, with title, description, legend and a table behind it.

Across stands what was measured, upwards what was estimated; on the line both are equal. Places are percentages of the
width, so that marks and words keep their size on a phone. Each method has a shape of its own beside its colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from statistics import median

from markupsafe import Markup

from macros import caption, table
from macros.columns import bare_table
from macros.estimator import units
from macros.figures import element, joined
from macros.language import Language, exact
from macros.readings import COUNTERS, Reading, ranges_of
from macros.run import either

_HEIGHT = 300  # pixels of the plot
_BELOW = 40  # for the amounts and the name of the axis
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)  # GB between two lines of the grid
_MOST_LINES = 6
_BAND = 10  # percent above and below the line that are drawn
_SHAPES = {
    "full": '<circle r="5"/>',
    "lora": '<path d="M-4.6-4.6H4.6V4.6H-4.6Z"/>',
    "qlora": '<path d="M0-6.5 6.5 0 0 6.5-6.5 0Z"/>',
}
_COLUMNS = ("name", "method", "micro_batch_size", "sequence_length")


def dots(
    language: Language, readings: Sequence[Reading], counter: str, serial: str, told: caption.Told | None = None
) -> Markup:
    """The chart of one counter: "allocated" as dots, "reserved" and "device" as ranges.

    Raises `ValueError` for another counter, and if no run has a figure of it beside an estimate.
    """
    if counter not in COUNTERS:
        raise ValueError(f"there is no counter {counter!r}{either(counter, COUNTERS, 'counters are')}")
    shown = [reading for reading in readings if _has(reading, counter)]
    if not shown:
        raise ValueError(f"none of these runs has {counter} bytes beside an estimate")
    most = max(max(_measured(reading, counter), _ends(reading, counter)[1]) for reading in shown)
    step = next((size for size in _STEPS if most <= _MOST_LINES * size * units.GB), _STEPS[-1])
    limit = -(-most // (step * units.GB)) * step * units.GB
    ident = f"vg-{sha256(repr([language.code, counter, [r.run.key for r in shown], serial]).encode()).hexdigest()[:8]}"
    methods = [method for method in _SHAPES if any(reading.value("method") == method for reading in shown)]
    picture = element(
        "svg",
        element("title", language.text(f"dots.title.{counter}"), id=f"{ident}-title")
        + element("desc", _described(language, shown, counter), id=f"{ident}-desc")
        + _grid(language, step, limit)
        + joined(_mark(language, reading, counter, limit) for reading in shown),
        class_="vg-dots",
        width="100%",
        height=_HEIGHT + _BELOW,
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
    )
    behind = bare_table(language, table.columns_of_readings(language, shown, (*_COLUMNS, *_figures(counter))))
    scroll = element(
        "div", behind, class_="vg-scroll", tabindex="0", role="region", aria_label=language.text("chart.table")
    )
    details = element("details", element("summary", language.text("chart.table")) + scroll, class_="vg-chart__table")
    note = caption.Note(language, told)
    note.say(language.text("caption.dots" if counter == "allocated" else "caption.dots.range"))
    if counter != "allocated":
        note.repeat(language.text("caption.nearly_full"))
    below = element("figcaption", note.written(), class_="vg-caption")
    legend = _legend(language, shown, methods, counter)
    return element("figure", picture + legend + details + below, class_="vg-chart", data_search_exclude="")


def _has(reading: Reading, counter: str) -> bool:
    if reading.compared is None or counter not in reading.run.observed:
        return False
    return counter == "allocated" or not reading.compared.nearly_full


def _measured(reading: Reading, counter: str) -> int:
    return reading.run.observed[counter]


def _ends(reading: Reading, counter: str) -> tuple[int, int]:
    """The lowest and the highest estimate; one and the same for allocated bytes."""
    if counter == "allocated":
        return reading.peak, reading.peak
    limits = reading.reserved if counter == "reserved" else reading.device
    return limits.low, limits.high


def _figures(counter: str) -> tuple[str, ...]:
    return ("observed_allocated", "peak", "error") if counter == "allocated" else (f"observed_{counter}", counter)


def _inside(reading: Reading, counter: str) -> bool:
    low, high = _ends(reading, counter)
    return low <= _measured(reading, counter) <= high


def _described(language: Language, shown: Sequence[Reading], counter: str) -> str:
    runs = language.plural("unit.runs", len(shown), number=language.number(len(shown)))
    if counter == "allocated":
        errors = [reading.error for reading in shown]
        return language.text(
            "dots.described",
            runs=runs,
            median=language.deviation(exact(median(map(abs, errors)))),
            worst=language.deviation(exact(max(errors, key=abs)), signed=True),
        )
    (row,) = (row for row in ranges_of(shown) if row.counter == counter)
    return language.text("dots.described.range", runs=runs, inside=language.percent(exact(row.inside)))


def _x(size: float, limit: int) -> str:
    return f"{100 * size / limit:.3f}%"


def _y(size: float, limit: int) -> str:
    return f"{_HEIGHT * (1 - size / limit):.1f}"


def _grid(language: Language, step: int, limit: int) -> Markup:
    """Lines with their amounts in both directions, the line of equal amounts, and the band about it."""
    drawn = []
    for size in range(0, limit + 1, step * units.GB):
        drawn.append(element("line", x1=0, x2="100%", y1=_y(size, limit), y2=_y(size, limit), class_="vg-dots__grid"))
        across = _x(size, limit)
        drawn.append(element("line", x1=across, x2=across, y1=_HEIGHT, y2=_HEIGHT + 4, class_="vg-dots__grid"))
        anchor = "start" if size == 0 else "end" if size == limit else "middle"
        amount = language.gb_number(size)
        drawn.append(element("text", amount, x=across, y=_HEIGHT + 17, text_anchor=anchor, class_="vg-dots__amount"))
        if 0 < size < limit:
            drawn.append(element("text", amount, x=2, y=float(_y(size, limit)) - 4, class_="vg-dots__amount"))
    share = _BAND / 100
    ends = ((1 / (1 + share), 1.0), (1.0, 1 - share))
    for right, top in ends:
        drawn.append(
            element("line", x1=0, y1=_HEIGHT, x2=_x(right * limit, limit), y2=_y(top * limit, limit), class_="vg-dots__band")
        )
    drawn.append(element("line", x1=0, y1=_HEIGHT, x2="100%", y2=0, class_="vg-dots__equal"))
    drawn.append(element("text", language.text("dots.estimated"), x=2, y=13, class_="vg-dots__axis"))
    drawn.append(
        element("text", language.text("dots.measured"), x="100%", y=_HEIGHT + 34, text_anchor="end", class_="vg-dots__axis")
    )
    return joined(drawn)


def _mark(language: Language, reading: Reading, counter: str, limit: int) -> Markup:
    """One run: a shape at its place, or a bar from the low to the high estimate."""
    method = reading.value("method")
    measured, (low, high) = _measured(reading, counter), _ends(reading, counter)
    estimated = language.gb(low) if low == high else language.gb_range(low, high)
    told = element(
        "title",
        language.text(
            "dots.run",
            name=f"{reading.name}, {language.text(f'method.{method}')}",
            measured=language.gb(measured),
            estimated=estimated,
        ),
    )
    if counter == "allocated":
        shape = element("g", told + Markup(_SHAPES[method]), class_=f"vg-mark vg-mark--{method}")
        return element("svg", shape, x=_x(measured, limit), y=_y(high, limit), width=1, height=1, overflow="visible")
    kind = f"vg-mark--{method}" if _inside(reading, counter) else "vg-range--outside"
    across = _x(measured, limit)
    return element(
        "line", told, x1=across, x2=across, y1=_y(low, limit), y2=_y(high, limit), class_=f"vg-range {kind}"
    )


def _legend(language: Language, shown: Sequence[Reading], methods: Sequence[str], counter: str) -> Markup:
    items = []
    for method in methods:
        number = sum(reading.value("method") == method for reading in shown)
        if counter == "allocated":
            drawn = element("g", Markup(_SHAPES[method]), class_=f"vg-mark vg-mark--{method}", transform="translate(8 8)")
        else:
            drawn = element("line", x1=8, x2=8, y1=1, y2=15, class_=f"vg-range vg-mark--{method}")
        count = language.plural("unit.runs", number, number=language.number(number))
        items.append((drawn, language.text("dots.method", method=language.text(f"method.{method}"), runs=count)))
    if counter != "allocated" and not all(_inside(reading, counter) for reading in shown):
        items.append((element("line", x1=8, x2=8, y1=1, y2=15, class_="vg-range vg-range--outside"), language.text("dots.outside")))
    items.append((element("line", x1=1, x2=15, y1=15, y2=1, class_="vg-dots__equal"), language.text("dots.equal")))
    band = language.text("dots.band", share=language.percent(exact(_BAND / 100)))
    items.append((element("line", x1=1, x2=15, y1=15, y2=1, class_="vg-dots__band"), band))
    listed = (
        element(
            "li",
            element("svg", drawn, class_="vg-legend__swatch", width=16, height=16, aria_hidden="true", focusable="false")
            + element("span", words, class_="vg-legend__name"),
        )
        for drawn, words in items
    )
    return element("ul", joined(listed), class_="vg-legend")
