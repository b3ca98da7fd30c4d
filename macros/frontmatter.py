"""What the front matter of a page must say: title, description, category, dates, and for a post its slug."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache

from macros.dataset import today
from macros.findings import Finding, quote, suggest
from macros.language import CODES, messages
from macros.pages import Page

ANCHOR = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_TITLE = 60
DESCRIPTION = (70, 160)

# What an article says of itself; an index or the list of sources says none of it.
_OF_AN_ARTICLE = ("standfirst", "category", "reviewed")
_OF_A_POST = ("date", "slug", "categories", "standfirst", "reviewed")
_OPTIONAL = ("draft", "hide", "order", "published", "render_macros", "search", "tags", "template", "translation")
_KNOWN = ("title", "description", *_OF_AN_ARTICLE, *_OF_A_POST, *_OPTIONAL)
_SHARED = ("category", "categories", "date", "order", "published", "slug", "tags", "template")


@cache
def categories() -> tuple[str, ...]:
    """The categories that have a name in every language (`category.…` in macros/messages)."""
    named = [[key for key in messages(code) if key.startswith("category.")] for code in CODES]
    return tuple(key.removeprefix("category.") for key in named[0] if all(key in keys for keys in named))


def findings(page: Page, shown: Mapping[str, str]) -> Iterator[Finding]:
    """What is wrong with one page's front matter; `shown` has those fields as readers see them, figures filled in."""

    def finding(key: str, says: str, *place: str) -> Finding:
        return Finding(page.path, page.front.line(key, *place), says)

    for key in page.meta:
        if key not in _KNOWN:
            yield finding(key, f"unknown key {quote(key)} in the front matter{suggest(key, _KNOWN)}")
    for key in _required(page):
        if not page.meta.get(key):
            yield Finding(page.path, 1, f"the front matter lacks {key!r}")
    title, description = shown.get("title", ""), shown.get("description", "")
    if len(title) > LONGEST_TITLE:
        yield finding("title", f"title: expected at most {LONGEST_TITLE} characters, got {len(title)}")
    shortest, longest = DESCRIPTION
    if description and not shortest <= len(description) <= longest:
        yield finding("description", f"description: expected {shortest} to {longest} characters, got {len(description)}")
    for category, place in _categories(page):
        if category not in categories():
            hint = suggest(category, categories()) or f"; there are {', '.join(categories())}"
            yield finding(place, f"there is no category {quote(category)}{hint}")
    if "draft" in page.meta and page.meta["draft"] not in ("true", "false"):
        yield finding("draft", f"draft: expected true or false, got {quote(page.meta['draft'])}")
    for place, value in _days(page):
        if problem := _wrong_day(value, page.is_draft):
            yield finding(place[0], f"{'.'.join(place)}: {problem}", *place[1:])
    if page.is_post and "slug" in page.meta and not ANCHOR.fullmatch(str(page.meta["slug"])):
        yield finding("slug", f"slug: expected lower-case ASCII words with hyphens, got {quote(page.meta['slug'])}")
    yield from _anchors(page)


def differences(page: Page, source: Page) -> Iterator[Finding]:
    """Fields that must be the same in each language of an article."""
    for key in _SHARED:
        own, others = page.meta.get(key), source.meta.get(key)
        if own != others:
            says = f"{key}: {source.path}:{source.front.line(key)} has {_short(others)}, here is {_short(own)}"
            yield Finding(page.path, page.front.line(key), says)


def _short(value: object) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key}: {part}" for key, part in value.items())
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "none" if value is None else quote(value)


def _required(page: Page) -> tuple[str, ...]:
    if page.is_post:
        return ("title", "description", *_OF_A_POST)
    # Whoever forgets one of the three of an article has mostly written another.
    is_article = not page.is_index and any(key in page.meta for key in _OF_AN_ARTICLE)
    return ("title", "description", *(_OF_AN_ARTICLE if is_article else ()))


def _categories(page: Page) -> Iterator[tuple[object, str]]:
    if "category" in page.meta:
        yield page.meta["category"], "category"
    listed = page.meta.get("categories", [])
    for category in listed if isinstance(listed, list) else [listed]:
        yield category, "categories"


def _days(page: Page) -> Iterator[tuple[tuple[str, ...], object]]:
    yield from (((key,), page.meta[key]) for key in ("published", "reviewed") if key in page.meta)
    dates = page.meta.get("date")
    if isinstance(dates, dict):
        yield from ((("date", name), value) for name, value in dates.items())
        if "created" not in dates:
            yield ("date",), "no created"
    elif dates is not None:
        yield ("date",), dates


def _wrong_day(value: object, is_draft: bool) -> str | None:
    try:
        day = date.fromisoformat(str(value)) if re.fullmatch(r"\d{4}-\d\d-\d\d", str(value)) else None
    except ValueError:
        day = None
    if day is None:
        return f"expected a day like 2026-11-30, got {quote(value)}"
    return f"{day} is in the future" if day > today() and not is_draft else None


def _anchors(page: Page) -> Iterator[Finding]:
    """Headings without an anchor of their own, with a bad one, or with one that the page has already."""
    seen: dict[str, int] = {}
    for heading in page.headings:
        if heading.level == 1:
            continue
        if not heading.anchor:
            yield Finding(page.path, heading.line, "this heading has no anchor; write one behind it: { #short-answer }")
        elif not ANCHOR.fullmatch(heading.anchor):
            says = f"anchor {quote(heading.anchor)}: expected lower-case ASCII words with hyphens, like short-answer"
            yield Finding(page.path, heading.line, says)
        elif heading.anchor in seen:
            yield Finding(page.path, heading.line, f"anchor {heading.anchor!r} stands in line {seen[heading.anchor]} already")
        seen.setdefault(heading.anchor, heading.line)
