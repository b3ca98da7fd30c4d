"""Figures and small marks as HTML: `<data class="figure" value=…>`, verdict badges, links to sources.

Text comes from a `Language`; everything that comes from data is escaped here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from markupsafe import Markup, escape

from macros.language import Exact, Language, exact, machine
from macros.records import Source

# One shape per verdict, so that it is told apart without colour: a disc with a tick, a triangle, a cross.
_SHAPES = {
    "comfortable": "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Zm3.2 3.9L7 9.1 4.8 6.9 3.6 8.1 7 11.5l5.4-5.4Z",
    "tight": "M8 1 15.5 14.5H.5ZM7.2 5.8v4.4h1.6V5.8Zm0 5.4v1.6h1.6v-1.6Z",
    "does_not_fit": "M3.2 1.6 8 6.4l4.8-4.8 1.6 1.6L9.6 8l4.8 4.8-1.6 1.6L8 9.6l-4.8 4.8-1.6-1.6L6.4 8 1.6 3.2Z",
}


def element(name: str, content: object = "", /, **attributes: object) -> Markup:
    """One HTML element on one line; `class_` stands for class, `_` in names for `-`, None leaves an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value is not None
    )
    # Every part is escaped here; Markup's own format would take several times as long, and pages have ten thousands of these.
    return Markup(f"<{name}{written}>{escape(content)}</{name}>")


def joined(parts: Any) -> Markup:
    return Markup("").join(escape(part) for part in parts)


def figure(value: str, text: str) -> Markup:
    """A computed figure: its machine value, equal in all languages, and its text in one of them."""
    return element("data", text, class_="figure", value=value)


def is_range(value: object) -> bool:
    return hasattr(value, "low") and hasattr(value, "high")


def byte_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number of bytes, got {value!r}")
    return value


def gb(language: Language, value: Any, decimals: int | None = None, mark: str | None = None) -> Markup:
    """Bytes, or a range of bytes, in GB; `mark` is `about` or `approx` and goes before the figure."""
    if is_range(value):
        text, worth = language.gb_range(value.low, value.high, decimals), f"{value.low}..{value.high}"
    else:
        text, worth = language.gb(byte_count(value), decimals), str(value)
    return figure(worth, language.text(mark, amount=text) if mark else text)


def gib(language: Language, value: Any) -> Markup:
    return figure(str(value), language.gib(byte_count(value)))


def headline(language: Language, value: Any) -> Markup:
    """Bytes in GB with the same amount in GiB beside it, as PyTorch prints it."""
    both = language.text("headline", gb=language.gb(byte_count(value)), gib=language.gib(value))
    return figure(str(value), both)


def number(language: Language, value: Any, decimals: int | None = None) -> Markup:
    if is_range(value):
        return estimated(language, value)
    worth = exact(value)
    return figure(machine(worth), language.number(worth, decimals))


def ratio(language: Language, value: Exact) -> Markup:
    return figure(machine(value), language.ratio(value))


def percent(language: Language, value: Any) -> Markup:
    worth = exact(value)
    return figure(machine(worth), language.percent(worth))


def deviation(language: Language, value: Any, signed: bool = False) -> Markup:
    """A relative error, with its sign if it matters in which direction."""
    worth = exact(value)
    return figure(machine(worth), language.deviation(worth, signed))


def count(language: Language, value: Any) -> Markup:
    return figure(str(value), language.count(_whole(value)))


def parameters(language: Language, value: Any) -> Markup:
    return figure(str(value), language.parameters(_whole(value)))


def bytes_(language: Language, value: Any, key: str = "unit.bytes") -> Markup:
    worth = exact(value)
    return figure(machine(worth), language.bytes(worth, key))


def rate(language: Language, value: Any) -> Markup:
    """Tokens per second: a range, or a published number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return figure(machine(exact(value)), language.rate(value, value))
    return figure(_ends(value), language.rate(value.low, value.high))


def estimated(language: Language, value: Any) -> Markup:
    """A range of plain numbers, two significant digits each."""
    number = language.range(language.significant(value.low), language.significant(value.high))
    return figure(_ends(value), number)


def _ends(value: Any) -> str:
    if not is_range(value):
        raise ValueError(
            "no published run is like this one on its card, so that it has no speed"
            if value is None
            else f"expected a range, got {value!r}"
        )
    return f"{machine(exact(value.low))}..{machine(exact(value.high))}"


def duration(language: Language, seconds: Any) -> Markup:
    if seconds is None or is_range(seconds):
        return figure(_ends(seconds), language.duration_range(seconds.low, seconds.high))
    if isinstance(seconds, Fraction):
        seconds = float(seconds)
    worth = exact(seconds)
    if worth < 0:
        raise ValueError(f"expected seconds of at least 0, got {seconds}")
    return figure(machine(worth), language.duration(seconds))


def verdict(language: Language, value: Any) -> Markup:
    """The verdict as word and shape; its colour comes from the style sheet."""
    if value not in _SHAPES:
        raise ValueError(
            "there is no verdict without a GPU; give estimate(…) a gpu="
            if value is None
            else f"expected a verdict, got {value!r}"
        )
    shape = Markup(
        '<svg class="vg-verdict__shape" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" '
        'focusable="false"><path fill="currentColor" fill-rule="evenodd" d="{}"/></svg>'
    ).format(_SHAPES[value])
    word = element("span", language.text(f"verdict.{value}"), class_="vg-verdict__word")
    return element("span", shape + word, class_=f"vg-verdict vg-verdict--{value}", data_verdict=value)


def short_name(language: Language, source: Source) -> str:
    """`Hu et al. 2021`: who, and the year of publication if it is known."""
    who = source.publisher
    if source.authors:
        first, comma, _ = source.authors.partition(",")
        surname = first.split(" et al")[0].split(" ")[-1]
        several = bool(comma) or "et al" in source.authors
        who = language.text("cite.et_al", author=surname) if several else surname
    year = (source.published or "")[:4]
    return language.text("cite.short", who=who, year=year) if year else str(who)


def cite(language: Language, source: Source) -> Markup:
    """A small link to a source; its title and the day of access are the tooltip."""
    title = language.text("cite.title", title=source.title, date=language.date(source.accessed))
    link = element("a", short_name(language, source), href=source.url, title=title, rel="noopener")
    return element("span", Markup("[{}]").format(link), class_="vg-cite")


def entry(source: Source) -> Markup:
    """Who and what of a source, its title as a link: an entry of a list of sources."""
    link = element("a", element("cite", source.title), href=source.url, rel="noopener")
    return Markup("{}: {}").format(source.authors or source.publisher, link)


def cite_full(language: Language, source: Source) -> Markup:
    """A source as an entry with its date and the day of access."""
    facts = [language.moment(source.published)] if source.published else []
    facts.append(language.text("cite.accessed", date=language.date(source.accessed)))
    return Markup("{} ({})").format(entry(source), "; ".join(facts))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number of at least 0, got {value!r}")
    return value
