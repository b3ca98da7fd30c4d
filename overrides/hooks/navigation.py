"""Fills the navigation from the folders, gives it the words of the language, and leaves drafts out of what is published."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files, InclusionLevel
from site_pages import CATEGORIES, is_draft, rank


@event_priority(0)
def on_files(files: Files, config) -> Files:
    for file in files.documentation_pages():
        # The blog leaves out drafts among its posts by itself.
        if file.abs_src_path and "/posts/" not in f"/{file.src_uri}" and is_draft(file.abs_src_path):
            file.inclusion = InclusionLevel.DRAFT
    config.nav = _expand(config.nav, files, config.extra["serving"], _named(config.nav))
    return files


def _named(nav: Any) -> set[str]:
    """The pages that the navigation names itself."""
    if isinstance(nav, str):
        return {nav}
    items = nav.values() if isinstance(nav, dict) else nav
    return set().union(*(_named(item) for item in items))


def _expand(nav: Any, files: Files, serving: bool, named: set[str]) -> Any:
    if isinstance(nav, str):
        return nav
    if isinstance(nav, dict):
        return {title: _expand(item, files, serving, named) for title, item in nav.items()}
    result: list[Any] = []
    for item in nav:
        if isinstance(item, str) and "*" in item:
            result += _matching(item, files, serving, named)
        else:
            result.append(_expand(item, files, serving, named))
    return result


def _matching(pattern: str, files: Files, serving: bool, named: set[str]) -> list[str]:
    chosen = []
    for file in files.documentation_pages(inclusion=InclusionLevel.all):
        same_folder = file.src_uri.count("/") == pattern.count("/") and fnmatch(file.src_uri, pattern)
        # Drafts have a place in the navigation of `make serve` only.
        visible = file.inclusion.is_in_nav() or (serving and file.inclusion is InclusionLevel.DRAFT)
        if same_folder and visible and file.src_uri not in named and file.generated_by is None:
            chosen.append(file)
    return [file.src_uri for file in sorted(chosen, key=rank)]


@event_priority(0)
def on_nav(nav, config, files):
    _translate(nav.items, config.extra["words"])
    _name_categories(files, config)
    return nav


def _name_categories(files: Files, config) -> None:
    """The blog titles the page of a category by its key; readers see its name."""
    for file in files.documentation_pages(inclusion=InclusionLevel.all):
        folder, _, key = file.src_uri.removesuffix(".md").rpartition("/")
        written_by_the_blog = file.abs_src_path and not Path(file.abs_src_path).is_relative_to(config.docs_dir)
        if folder == "blog/category" and key in CATEGORIES and written_by_the_blog:
            Path(file.abs_src_path).write_text(f"# {config.extra['words'].category(key)}\n", encoding="utf-8")


def _translate(items, words) -> None:
    """The titles in mkdocs.yml are keys of messages; pages without one keep their own title."""
    for item in items:
        if item.title and words.has(f"nav.{item.title}"):
            item.title = words(f"nav.{item.title}")
        _translate(item.children or (), words)
