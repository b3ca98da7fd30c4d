"""Parts of memory → a stacked bar as inline SVG, with title, description, legend and a table behind it.

Colours come from the style sheet by one class per part (`vg-part--weights`); every second part also carries a
pattern, so that neighbours are told apart without colour. Widths are percentages: text keeps its size on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from markupsafe import Markup, escape

from macros import caption, figures, grid, table
from macros.estimator import PARTS, units
from macros.figures import element, joined
from macros.language import Language
from macros.records import Gpu
from macros.run import Run

_BAR = 34  # pixels
_LABEL = 22
_GAP = 16
_LIMIT_LABEL = 18
_SMALLEST_SHARE = 0.006  # of the longest bar: what is thinner joins "other parts"
_NEAR_THE_EDGE = 0.1  # where a centred amount would leave the picture
_LABELLED_SHARE = 0.17  # wide enough for "12,3 GB" on a phone

# One pattern for each second part in the order of the chart, so that neighbours always differ.
_PATTERNS = {
    "rising": '<path d="M-1 1 1-1M0 8 8 0M7 9 9 7"/>',
    "dots": '<circle cx="2" cy="2" r="1.1"/><circle cx="6" cy="6" r="1.1"/>',
    "falling": '<path d="M7-1 9 1M0 0 8 8M-1 7 1 9"/>',
    "upright": '<path d="M2 0V8M6 0V8"/>',
    "grid": '<path d="M4 0V8M0 4H8"/>',
    "level": '<path d="M0 2H8M0 6H8"/>',
}
_PATTERN_OF = {part: list(_PATTERNS)[place // 2 % len(_PATTERNS)] for place, part in enumerate(PARTS) if place % 2}


@dataclass(frozen=True)
class _Segment:
    part: str  # "other" for the sum of what is too thin
    size: int


def bars(
    language: Language,
    runs: Sequence[Run],
    names: Sequence[str],
    shown: Sequence[str],
    moment: str | None,
    limits: Sequence[Gpu],
    serial: str,
    told: caption.Told | None = None,
) -> Markup:
    """The chart of one run or of several.

    `names` label the bars, `shown` are the recipe keys that these labels tell, `limits` are cards whose memory is
    drawn as a line, `serial` makes the ids of equal charts on one page differ, `told` is what its captions have said.
    """
    totals = [run.parts_at(moment)[-1].total for run in runs]
    longest = max([*totals, *(gpu.memory for gpu in limits)])
    segments = [_segments(run, moment, longest) for run in runs]
    ident = _ident(language, runs, moment, limits, serial)
    picture = _svg(language, ident, names, segments, totals, limits, longest)
    legend = _legend(language, ident, segments, limits)
    behind = table.parts_table(language, runs[0], moment) if len(runs) == 1 else grid.runs_table(language, runs, names)
    scroll = element(
        "div", behind, class_="vg-scroll", tabindex="0", role="region", aria_label=language.text("chart.table")
    )
    details = element("details", element("summary", language.text("chart.table")) + scroll, class_="vg-chart__table")
    note = caption.Note(language, told)
    if len(runs) == 1:
        note.say(language.text("chart.moment", moment=language.text(f"moment.{moment or runs[0].moment}")))
    note.hold_for(runs, shown)
    below = element("figcaption", note.written(), class_="vg-caption")
    return element("figure", picture + legend + details + below, class_="vg-chart", data_search_exclude="")


def _ident(language: Language, runs: Sequence[Run], moment: str | None, limits: Sequence[Gpu], serial: str) -> str:
    """An id that follows from the content, because a blog's index shows charts of several posts on one page."""
    said = repr([language.code, [run.keys for run in runs], moment, [gpu.key for gpu in limits], serial])
    return f"vg-{sha256(said.encode()).hexdigest()[:8]}"


def _segments(run: Run, moment: str | None, longest: int) -> list[_Segment]:
    """The parts of a bar in order; those too thin to see are one segment at the end."""
    *rows, _ = run.parts_at(moment)
    thin = [row for row in rows if row.total < _SMALLEST_SHARE * longest]
    wide = [_Segment(row.part, row.total) for row in rows if row not in thin]
    rest = sum(row.total for row in thin)
    return [*wide, _Segment("other", rest)] if units.rounded(rest, units.GB, 2) else wide


def _name(language: Language, part: str) -> str:
    return language.text("chart.other" if part == "other" else f"part.{part}")


def _percent(size: float, longest: int) -> str:
    return f"{100 * size / longest:.3f}%"


def _svg(
    language: Language,
    ident: str,
    names: Sequence[str],
    segments: Sequence[list[_Segment]],
    totals: Sequence[int],
    limits: Sequence[Gpu],
    longest: int,
) -> Markup:
    top = _LIMIT_LABEL * len(limits)
    step = _LABEL + _BAR + _GAP
    height = top + step * len(segments)
    title = language.text("chart.title", name=names[0]) if len(names) == 1 else language.text("chart.title.compare")
    told = " ".join(_told(language, *bar) for bar in zip(names, segments, totals, strict=True))
    drawn = [
        element("title", title, id=f"{ident}-title"),
        element("desc", told, id=f"{ident}-desc"),
        _definitions(ident, segments),
    ]
    for number, (name, bar, total) in enumerate(zip(names, segments, totals, strict=True)):
        drawn.append(_bar(language, ident, name, bar, total, longest, top + step * number))
    for number, gpu in enumerate(limits):
        bars_at = [top + step * place + _LABEL for place in range(len(segments))]
        drawn.append(_limit(language, gpu, longest, _LIMIT_LABEL * (number + 1) - 5, bars_at))
    return element(
        "svg",
        joined(drawn),
        class_="vg-chart__bars",
        width="100%",
        height=height,
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
    )


def _told(language: Language, name: str, bar: Sequence[_Segment], total: int) -> str:
    parts = language.listing(
        language.text("chart.item", name=_name(language, segment.part), amount=language.gb(segment.size))
        for segment in bar
    )
    return language.text("chart.description", name=name, total=language.gb(total), parts=parts)


def _definitions(ident: str, segments: Sequence[Sequence[_Segment]]) -> Markup:
    used = dict.fromkeys(
        _PATTERN_OF[segment.part] for bar in segments for segment in bar if segment.part in _PATTERN_OF
    )
    return element(
        "defs",
        joined(
            element(
                "pattern",
                Markup(_PATTERNS[name]),
                id=f"{ident}-{name}",
                class_="vg-pattern",
                width=8,
                height=8,
                patternUnits="userSpaceOnUse",
            )
            for name in used
        ),
    )


def _bar(
    language: Language, ident: str, name: str, bar: Sequence[_Segment], total: int, longest: int, top: int
) -> Markup:
    heading = language.text("chart.bar", name=name, total=language.gb(total))
    drawn = [element("text", heading, class_="vg-chart__name", x=0, y=top + _LABEL - 7)]
    start = 0
    for segment in bar:
        place = {
            "x": _percent(start, longest),
            "y": top + _LABEL,
            "width": _percent(segment.size, longest),
            "height": _BAR,
        }
        drawn.append(element("rect", class_=f"vg-part vg-part--{segment.part}", **place))
        if segment.part in _PATTERN_OF:
            drawn.append(
                element("rect", class_="vg-part__pattern", fill=f"url(#{ident}-{_PATTERN_OF[segment.part]})", **place)
            )
        if segment.size >= _LABELLED_SHARE * longest:
            drawn.append(
                element(
                    "text",
                    language.gb(segment.size),
                    class_=f"vg-part__label vg-part__label--{segment.part}",
                    x=_percent(start + segment.size / 2, longest),
                    y=top + _LABEL + _BAR // 2 + 5,
                    text_anchor="middle",
                )
            )
        start += segment.size
    return element("g", joined(drawn))


def _limit(language: Language, gpu: Gpu, longest: int, baseline: int, bars_at: Sequence[int]) -> Markup:
    """A line across every bar where a card ends, its amount on top; the legend says which card that is."""
    place = _percent(gpu.memory, longest)
    lines = (
        element("line", x1=place, x2=place, y1=top, y2=top + _BAR + 4, class_="vg-chart__limit") for top in bars_at
    )
    share = gpu.memory / longest
    anchor = "start" if share < _NEAR_THE_EDGE else "end" if share > 1 - _NEAR_THE_EDGE else "middle"
    amount = element(
        "text", language.gb(gpu.memory), x=place, y=baseline, text_anchor=anchor, class_="vg-chart__limit-name"
    )
    return joined([*lines, amount])


def _legend(language: Language, ident: str, segments: Sequence[Sequence[_Segment]], limits: Sequence[Gpu]) -> Markup:
    """Every part with its colour and pattern, for a single bar with its amount; then the cards that end a line."""
    seen = {segment.part for bar in segments for segment in bar}
    items = []
    for part in (*PARTS, "other"):
        if part not in seen:
            continue
        swatch = element("rect", class_=f"vg-part vg-part--{part}", width=16, height=16)
        if part in _PATTERN_OF:
            swatch += element(
                "rect", class_="vg-part__pattern", fill=f"url(#{ident}-{_PATTERN_OF[part]})", width=16, height=16
            )
        picture = _swatch(swatch)
        label = element("span", _name(language, part), class_="vg-legend__name")
        if len(segments) == 1:
            size = next(segment.size for segment in segments[0] if segment.part == part)
            label += Markup(" ") + element("span", figures.gb(language, size), class_="vg-legend__amount")
        items.append(element("li", picture + label))
    for gpu in limits:
        line = element("line", x1=8, x2=8, y1=0, y2=16, class_="vg-chart__limit")
        amount = figures.gb(language, gpu.memory)
        label = Markup(escape(language.text("chart.limit", gpu=gpu.name, amount="\0"))).replace("\0", amount)
        items.append(element("li", _swatch(line) + element("span", label, class_="vg-legend__name")))
    return element("ul", joined(items), class_="vg-legend")


def _swatch(drawn: Markup) -> Markup:
    return element("svg", drawn, class_="vg-legend__swatch", width=16, height=16, aria_hidden="true", focusable="false")
