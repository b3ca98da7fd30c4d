"""Adds to each entry of the search index the spellings under which German and Turkish readers type its words.

Material's search compares small letters as JavaScript makes them. So `Haeuser` does not find `Häuser`, and
`isik` finds neither `ışık` nor `IŞIK`. The worker of the theme indexes any field that `config.fields`
names: the field `fold` carries those spellings, at half the weight of the text, and is never shown.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from mkdocs.plugins import event_priority

_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"<[^>]+>")
_GERMAN_LONG = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_GERMAN_BARE = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})
_TURKISH_SMALL = str.maketrans({"I": "ı", "İ": "i"})
_TURKISH_CAPITAL = str.maketrans({"ı": "I", "i": "İ"})
_TURKISH_BARE = str.maketrans("çğıöşüâîû", "cgiosuaiu")


def spellings(word: str, locale: str) -> set[str]:
    """Other small-letter spellings of a word that a reader may type; without the one that the index has anyway."""
    plain = word.lower()
    if locale == "de":
        found = {plain.translate(_GERMAN_LONG), plain.translate(_GERMAN_BARE)}
    elif locale == "tr":
        small = word.translate(_TURKISH_SMALL).lower()
        capitals = small.translate(_TURKISH_CAPITAL).upper()
        first = small[:1].translate(_TURKISH_CAPITAL).upper() + small[1:]
        # The last two are what the browser's own lower casing makes of IŞIK and of İstanbul.
        found = {small, small.translate(_TURKISH_BARE), capitals.lower(), first.lower()}
    else:
        found = set()
    return found - {plain, ""}


def fold(index: dict, locale: str) -> dict:
    """The search index with the field `fold`."""
    index["config"]["fields"]["fold"] = {"boost": 0.5}
    for entry in index["docs"]:
        text = html.unescape(_TAG.sub(" ", f"{entry['title']} {entry['text']}"))
        words = sorted(set().union(*(spellings(word, locale) for word in set(_WORD.findall(text)))))
        if words:
            entry["fold"] = " ".join(words)
    return index


# After the search plugin has written its index.
@event_priority(-100)
def on_post_build(config) -> None:
    path = Path(config.site_dir) / "search" / "search_index.json"
    locale = config.extra["locale"]
    if path.is_file():
        index = fold(json.loads(path.read_text(encoding="utf-8")), locale)
        path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
