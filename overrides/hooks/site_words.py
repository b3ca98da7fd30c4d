"""What the hooks share: the languages of the site and the words of the page frame.

The frame's words are in `overrides/messages/<locale>.yml`; figures, dates and categories come from the
language of the articles, `macros/language.py`, so that frame and article never disagree.
"""

from __future__ import annotations

import importlib
import sys
from datetime import date
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
MESSAGES = PROJECT / "overrides" / "messages"

NAMES = {"de": "Deutsch", "en": "English", "tr": "Türkçe"}
SOURCE = "de"
"""The language whose pages the others translate unless an article names another one; it is built first."""

# The same texts read aloud in each language (Trauzettel-Klosinski and Dietz 2012, doi:10.1167/iovs.11-8284). Silent
# reading is faster, but those texts are for sixth grade and hold no figures to compare.
WORDS_PER_MINUTE = {"de": 179, "en": 228, "tr": 166}


def catalogue(locale: str) -> dict[str, str]:
    """The words of the page frame, read anew for each build so that `make serve` shows an edit."""
    with open(MESSAGES / f"{locale}.yml", encoding="utf-8") as file:
        return yaml.safe_load(file)


class Words:
    """The words of one language, for the templates of the theme."""

    def __init__(self, locale: str) -> None:
        self.locale = locale
        self._frame = catalogue(locale)

    def __call__(self, key: str, **slots: object) -> str:
        return self._frame[key].format(**slots)

    def has(self, key: str) -> bool:
        return key in self._frame

    def category(self, key: str) -> str:
        return self._articles().text(f"category.{key}")

    def offer(self, category: str | None) -> Any:
        """What the operator has an article of a category end with, or None."""
        self._articles()
        from macros import site_record

        return site_record.load(PROJECT).offer(category, self.locale)

    def reading_time(self, minutes: int) -> str:
        return self._articles().text("unit.reading_time", number=minutes)

    def date(self, day: date) -> str:
        return self._articles().date(day)

    def _articles(self):
        return macros_of("language").load(self.locale)


def macros_of(name: str):
    """A module of the macros. Not imported at the top: each build drops the package from the cache, and Python does not
    look beside mkdocs.yml by itself.
    """
    if str(PROJECT) not in sys.path:
        sys.path.insert(0, str(PROJECT))
    return importlib.import_module(f"macros.{name}")
