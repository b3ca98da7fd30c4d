"""One language of the site: its messages, and how it writes figures, plurals and dates.

The only file that imports Babel (dates and plural rules). Digits come from `estimator/units.py`, which the
browser runs too; marks, units and phrases come from `messages/<code>.yml`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path

from babel import Locale
from babel.dates import format_date

from macros import yamlfile
from macros.estimator import units
from macros.findings import suggest

CODES = ("de", "en", "tr")
MESSAGES = Path(__file__).parent / "messages"

Exact = int | Fraction

# CLDR's own patterns differ from the house style: month first and without no-break space.
_DATE_PATTERNS = {
    "long": {"de": "d.\u00a0MMMM y", "en": "d\u00a0MMMM y", "tr": "d\u00a0MMMM y"},
    "numeric": {"de": "dd.MM.y", "en": "y-MM-dd", "tr": "dd.MM.y"},
    "month": {"de": "MMMM y", "en": "MMMM y", "tr": "MMMM y"},
}


def exact(value: int | float | str | Fraction) -> Exact:
    """A number without binary noise: 0.1 is one tenth, as somebody typed it. Raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction)):
        raise ValueError(f"expected a number, got {value!r}")
    if isinstance(value, int):
        return value
    try:
        fraction = Fraction(repr(value) if isinstance(value, float) else value)
    except ValueError:
        raise ValueError(f"expected a number, got {value!r}") from None
    return int(fraction) if fraction.denominator == 1 else fraction


def machine(value: Exact) -> str:
    """A number for programs: a point, no grouping, the same in every language."""
    return str(value) if isinstance(value, int) else repr(float(value))


class Language:
    """The messages of one language and its way to write values; makes text, never HTML."""

    def __init__(self, code: str, messages: Mapping[str, str]) -> None:
        self.code = code
        self._messages = messages
        self._locale = Locale.parse(code)
        self._decimal = messages["mark.decimal"]
        self._group = messages["mark.group"]
        self._minus = messages["mark.minus"]

    # Messages

    def text(self, key: str, /, **slots: object) -> str:
        """The message with its placeholders filled. Raises `ValueError` for a key that does not exist."""
        if key not in self._messages:
            near = suggest(key, self._messages)
            raise ValueError(f"macros/messages/{self.code}.yml has no {key!r}{near}")
        message = self._messages[key]
        return message.format(**slots) if slots else message

    def has(self, key: str) -> bool:
        return key in self._messages

    def plural(self, key: str, count: Exact, /, **slots: object) -> str:
        """The form of a counted message (`key.one`, `key.other`) that CLDR's rule for the language asks for.

        A number with decimals takes `other` (1,5 Stunden): the rule sees what is printed.
        """
        category = self._locale.plural_form(count) if isinstance(count, int) else "other"
        return self.text(f"{key}.{category}", **slots)

    # Numbers

    def number(self, value: Exact, decimals: int | None = None, trim: bool | None = None) -> str:
        """A number; without `decimals` as many as its digits need, at most three, trailing zeros cut."""
        numerator, denominator = value.numerator, value.denominator
        cut = decimals is None if trim is None else trim
        places = 3 if decimals is None else decimals
        return units.decimal_text(numerator, denominator, places, cut, self._decimal, self._group, self._minus)

    def ratio(self, value: Exact) -> str:
        """A ratio for prose, two significant digits: 3,2 (-mal so viel)."""
        places = units.significant_decimals(abs(value.numerator), value.denominator, 2)
        return self.number(value, places, trim=True)

    def percent(self, value: Exact) -> str:
        number = units.percent_text(value.numerator, value.denominator, self._decimal, self._group, self._minus)
        return self.text("unit.percent", number=number)

    def deviation(self, value: Exact, signed: bool = False) -> str:
        """An error as a share: what is not zero never prints as 0; the sign stands before the whole, in Turkish too."""
        size = abs(value)
        least = Fraction(1, 10_000)
        text = self.percent(size)
        if 0 < size < least / 2:
            return self.text("below", amount=self.percent(least))
        if not signed or size == 0:
            return text
        return (self._minus if value < 0 else "+") + text

    def gb_number(self, byte_count: int, decimals: int | None = None) -> str:
        """Bytes as the number of GB: for prose, or with the decimals of a column."""
        if decimals is None:
            return units.gb_text(byte_count, self._decimal, self._group, self._minus)
        return units.gb_column_text(byte_count, decimals, self._decimal, self._group, self._minus)

    def gb(self, byte_count: int, decimals: int | None = None) -> str:
        return self.text("unit.gb", number=self.gb_number(byte_count, decimals))

    def gb_range(self, low: int, high: int, decimals: int | None = None) -> str:
        """`17,2–18,4 GB`, or one amount where both ends print alike."""
        number = self.range(self.gb_number(low, decimals), self.gb_number(high, decimals))
        return self.text("unit.gb", number=number)

    def range(self, low: str, high: str) -> str:
        return low if low == high else self.text("range", low=low, high=high)

    def gib(self, byte_count: int) -> str:
        number = units.gib_text(byte_count, self._decimal, self._group, self._minus)
        return self.text("unit.gib", number=number)

    def count(self, count: int) -> str:
        """A large count in words: 8,03 Mrd."""
        return self._counted("count", count)

    def parameters(self, count: int) -> str:
        """A count of parameters in words: 8,03 Mrd. Parameter."""
        return self._counted("parameters", count)

    def _counted(self, key: str, count: int) -> str:
        scale = {units.BILLION: "billion", units.MILLION: "million", 1: "plain"}[units.count_scale(count)]
        return self.text(f"{key}.{scale}", number=units.count_text(count, self._decimal, self._group))

    def bytes(self, value: Exact, key: str = "unit.bytes") -> str:
        """A small amount spelled out: 16 Byte, 4,13 bits; `key` names the unit's plural messages."""
        return self.plural(key, value, number=self.number(value, 2, trim=True))

    def price_per_hour(self, euros: Exact) -> str:
        return self.text("unit.eur_per_hour", number=self.number(euros, 2))

    def duration(self, seconds: int | float) -> str:
        """A span of time to the minute; below one minute to the second."""
        if seconds < 60:
            return self.text("duration.seconds", seconds=self.number(exact(seconds), 0))
        hours, minutes = units.hours_and_minutes(seconds)
        if hours == 0:
            return self.text("duration.minutes", minutes=minutes)
        return self.text("duration.hours", hours=self.number(hours), minutes=minutes)

    def significant(self, value: float) -> str:
        """An estimated number ≥ 0 with two significant digits."""
        # A thousandth is enough for what is printed.
        return units.significant_text(math.floor(value * 1000 + 0.5), 1000, 2, self._decimal, self._group)

    def rate(self, low: float, high: float) -> str:
        """Tokens per second, as a range."""
        return self.text("unit.tokens_per_second", number=self.range(self.significant(low), self.significant(high)))

    def duration_range(self, low: float, high: float) -> str:
        """An estimated span of time between two numbers of seconds, in the unit that fits the longer one."""
        unit = units.time_unit(high)
        name = {units.SECOND: "seconds", units.MINUTE: "minutes", units.HOUR: "hours", units.DAY: "days"}[unit]
        number = self.range(self.significant(low / unit), self.significant(high / unit))
        return self.plural(f"span.{name}", 1 if number == "1" else Fraction(high), number=number)

    def ordinal(self, number: int) -> str:
        return self.text(f"ordinal.{self._locale.ordinal_form(number)}", number=number)

    # Dates

    def date(self, day: date, form: str = "long") -> str:
        """A day as `long` (30. November 2026) or `numeric`, or its `month` only."""
        return format_date(day, _DATE_PATTERNS[form][self.code], locale=self._locale)

    def moment(self, text: str) -> str:
        """A day, month or year of a data file: `2024-07` is Juli 2024, `2021` stays a year."""
        parts = [int(part) for part in text.split("-")]
        if len(parts) == 1:
            return text
        if len(parts) == 2:
            return self.date(date(parts[0], parts[1], 1), "month")
        return self.date(date(*parts))

    def listing(self, items: Iterable[str]) -> str:
        """Items in one line; a comma does in every language here."""
        return ", ".join(items)


@cache
def load(code: str) -> Language:
    """The language of a code. Raises `ValueError` for one that the site does not have."""
    if code not in CODES:
        raise ValueError(f"no language {code!r}; the site has {', '.join(CODES)}")
    return Language(code, messages(code))


def messages(code: str) -> dict[str, str]:
    """The catalogue of one language as it stands in its file."""
    return yamlfile.read(MESSAGES / f"{code}.yml", f"macros/messages/{code}.yml").value


def placeholders(message: str) -> set[str]:
    """The names of the slots of a message."""
    return set(re.findall(r"\{(\w*)\}", message))
