"""Fills the navigation from the folders, gives it the words of the language, and leaves drafts out of what is published."""

from __future__ import annotations

import functools
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.utils import meta

# The order of categories in navigation and lists; an article's `order` and path decide within one.
CATEGORIES = ("guide", "basics", "practice", "news")


@functools.lru_cache(maxsize=1024)
def _front_matter(path: str, changed: int) -> dict[str, Any]:
    text = Path(path).read_text(encoding="utf-8-sig")
    try:
        return meta.get_data(text)[1]
    except Exception:  # unreadable front matter is reported, with its line, by the check and by MkDocs
        return {}


def front_matter(path: str | Path) -> dict[str, Any]:
    """The front matter of a page as its author wrote it."""
    return _front_matter(str(path), Path(path).stat().st_mtime_ns)


def is_draft(path: str | Path) -> bool:
    return front_matter(path).get("draft") is True


@event_priority(0)
def on_files(files: Files, config) -> Files:
    for file in files.documentation_pages():
        if file.abs_src_path and "/posts/" not in f"/{file.src_uri}" and is_draft(file.abs_src_path):
            file.inclusion = InclusionLevel.DRAFT
    config.nav = _expand(config.nav, files, config.extra["serving"], _named(config.nav))
    return files


def _named(nav: Any) -> set[str]:
    """The pages that the navigation names itself."""
    if isinstance(nav, str):
        return {nav}
    items = nav.values() if isinstance(nav, dict) else nav
    return set().union(*(_named(item) for item in items)) if items else set()


def _expand(nav: Any, files: Files, serving: bool, named: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expand(item, files, serving, named) for title, item in nav.items()}
    if isinstance(nav, str):
        return nav
    result: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            result += _matching(item, files, serving, named)
        else:
            result.append(_expand(item, files, serving, named))
    return result


def _matching(pattern: str, files: Files, serving: bool, named: set[str]) -> list[str]:
    chosen = []
    for file in files.documentation_pages():
        same_folder = file.src_uri.count("/") == pattern.count("/") and fnmatch(file.src_uri, pattern)
        # Below "not in navigation" are drafts, which `make serve` shows, and what is excluded for good.
        visible = file.inclusion.is_in_nav() or (serving and file.inclusion is InclusionLevel.DRAFT)
        if same_folder and visible and file.src_uri not in named and file.generated_by is None:
            chosen.append(file)
    return [file.src_uri for file in sorted(chosen, key=rank)]


def rank(file) -> tuple[int, int, str]:
    """Where an article stands in navigation and lists, the same in each language."""
    known = front_matter(file.abs_src_path)
    category, order = known.get("category"), known.get("order")
    place = CATEGORIES.index(category) if category in CATEGORIES else len(CATEGORIES)
    return place, order if isinstance(order, int) else 1000, file.src_uri


@event_priority(0)
def on_nav(nav, config, files):
    words = config.extra["words"]

    def translate(items) -> None:
        for item in items:
            if item.title and re.fullmatch(r"[a-z_]+", item.title) and words.has(f"nav.{item.title}"):
                item.title = words(f"nav.{item.title}")
            if item.children:
                translate(item.children)

    translate(nav.items)
    return nav
