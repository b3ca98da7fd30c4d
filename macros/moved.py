"""Two sets of published pages → what moved: flipped verdicts, changed figures, and figures that came or went.

A figure is found again by the headings of its line and column, or in running text by the words before it; what is left
over within a section is paired in order. The languages of a page show the same figures, so one change is told once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from macros.published import Page, Shown

Pages = dict[str, dict[str, Page]]


@dataclass
class Moved:
    """One figure or verdict that changed, with its text in each language that shows the change."""

    page: str
    section: str
    row: str
    column: str
    block: int
    verdict: bool
    old: str
    new: str
    texts: dict[str, list[str]] = field(default_factory=dict)
    call: str = ""

    @property
    def percent(self) -> float | None:
        """By how much the value changed; of a range its upper end. None where a share says nothing: from zero, or across it."""
        try:
            old, new = (_number(value) for value in (self.old, self.new))
        except ValueError:
            return None
        return 100 * (new - old) / abs(old) if old * new > 0 or (old and not new) else None

    @property
    def visible(self) -> bool:
        """Whether a reader sees the change: a value may change by less than is printed."""
        return any(old != new for old, new in self.texts.values())

    def as_json(self) -> dict[str, Any]:
        percent = self.percent
        return {
            "page": self.page,
            "section": self.section,
            "row": self.row,
            "column": self.column,
            "call": self.call,
            "old": self.old,
            "new": self.new,
            "percent": None if percent is None else round(percent, 4),
            "texts": self.texts,
        }


@dataclass
class Count:
    """Figures that a page shows only before or only after."""

    page: str
    section: str
    block: int
    rows: list[str]
    number: int
    languages: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "page": self.page,
            "section": self.section,
            "rows": self.rows,
            "number": self.number,
            "languages": self.languages,
        }


@dataclass
class Difference:
    """Everything that differs between two sites."""

    moved: list[Moved] = field(default_factory=list)
    came: list[Count] = field(default_factory=list)
    went: list[Count] = field(default_factory=list)
    pages_came: list[str] = field(default_factory=list)
    pages_went: list[str] = field(default_factory=list)
    text_only: list[str] = field(default_factory=list)


def _number(value: str) -> float:
    number = value.rpartition("..")[2]
    top, _, bottom = number.partition("/")
    return float(top) / (float(bottom) if bottom else 1)


def compare(old: Pages, new: Pages) -> Difference:
    """What differs between two sites, in the order of the new one's pages."""
    difference = Difference()
    told: dict[tuple[Any, ...], Moved] = {}
    counts: tuple[dict[Any, Count], dict[Any, Count]] = ({}, {})
    # English first: it is what a reviewer from anywhere reads.
    for language in sorted({*old, *new}, key=lambda code: (code != "en", code)):
        before, after = old.get(language, {}), new.get(language, {})
        difference.pages_came += [f"{language}/{name}" for name in after if name not in before]
        difference.pages_went += [f"{language}/{name}" for name in before if name not in after]
        for name in [name for name in after if name in before]:
            pairs, left = match(before[name].shown, after[name].shown)
            moved = [(one, other) for one, other in pairs if one.value != other.value]
            for one, other in moved:
                key = (name, other.section, other.block, other.at, one.value, other.value)
                if key not in told:
                    told[key] = Moved(
                        name, other.section, other.row, other.column, other.block, other.verdict, one.value, other.value
                    )
                told[key].texts[language] = [one.text, other.text]
            for side in (0, 1):
                _count(counts[side], name, language, left[side])
            if not moved and not any(left) and before[name].text != after[name].text:
                difference.text_only.append(f"{language}/{name}")
    difference.moved = list(told.values())
    difference.went, difference.came = (list(side.values()) for side in counts)
    return difference


def _count(counts: dict[Any, Count], page: str, language: str, left: Iterable[Shown]) -> None:
    groups: dict[tuple[str, int], list[Shown]] = defaultdict(list)
    for shown in left:
        groups[shown.section, shown.block].append(shown)
    for (section, block), listed in groups.items():
        key = (page, section, block, len(listed))
        rows = list(dict.fromkeys(shown.row for shown in listed)) if block else []
        counts.setdefault(key, Count(page, section, block, rows, len(listed), [])).languages.append(language)


def match(old: Sequence[Shown], new: Sequence[Shown]) -> tuple[list[tuple[Shown, Shown]], tuple[list[Shown], list[Shown]]]:
    """Pairs of the same figure before and after, in the new order, and what has no partner on either side."""
    partner: dict[int, Shown] = {}
    left_old, left_new = list(old), list(enumerate(new))
    for name in (_place, _place_of_renamed, _value_in_section, _order):
        left_old, left_new = _pair(name, left_old, left_new, partner)
    pairs = [(partner[number], shown) for number, shown in enumerate(new) if number in partner]
    return pairs, (left_old, [shown for _, shown in left_new])


def _pair(name: Any, old: list[Shown], new: list[tuple[int, Shown]], partner: dict[int, Shown]) -> Any:
    """Pair what has the same name, first with first; with the name `_order` only where both sides have as many."""
    names: dict[Any, list[Shown]] = defaultdict(list)
    for shown in old:
        names[name(shown)].append(shown)
    if name is _order:
        sizes: dict[Any, int] = defaultdict(int)
        for _, shown in new:
            sizes[name(shown)] += 1
        names = defaultdict(list, {key: listed for key, listed in names.items() if len(listed) == sizes[key]})
    taken, left = set(), []
    for number, shown in new:
        if names[name(shown)]:
            partner[number] = names[name(shown)].pop(0)
            taken.add(id(partner[number]))
        else:
            left.append((number, shown))
    return [shown for shown in old if id(shown) not in taken], left


def _place(shown: Shown) -> Any:
    return shown.section, shown.heads, shown.row, shown.column, shown.verdict


def _place_of_renamed(shown: Shown) -> Any:
    """The same line and column in a table whose headings changed, as when a heading holds a figure."""
    return shown.section, shown.block, shown.row if shown.block else "", shown.at[1:] if shown.block else None, shown.verdict, (
        None if shown.block else shown.value
    )


def _value_in_section(shown: Shown) -> Any:
    return shown.section, shown.block > 0, shown.verdict, shown.value


def _order(shown: Shown) -> Any:
    return shown.section, shown.block, shown.verdict
