"""Makes the search index find what German, English and Turkish readers type, the page that answers it first.

Material's search compares small letters as JavaScript makes them. So `Haeuser` does not find `Häuser`, and
`isik` finds neither `ışık` nor `IŞIK`; nor does `24gb` find `24 GB`. The worker of the theme indexes any field that
`config.fields` names: each field gets a second one, at half its weight and never shown, that carries those spellings.
Descriptions are indexed too: they say in a reader's words what a page answers.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from mkdocs.plugins import event_priority

# A title weighs 1000 and a text 1; what a page says it answers lies between.
_DESCRIPTION = 400.0
_FOLDED = ("title", "description", "text")
# Articles weigh 1: they answer a question. Pages on one model or one class of cards answer only theirs, and lists,
# the home page and the blog name everything. `search: {boost: …}` in the front matter says otherwise.
_WITHIN_A_FOLDER = 0.5
_NO_ARTICLE = 0.3

_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"<[^>]+>")
_AMOUNT = re.compile(r"(\d+)[ \u00a0](GB|GiB|MiB|[Bb]it)\b")
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


def folded(content: str, locale: str) -> str:
    """What a field is indexed under besides its own words: other spellings, and amounts as one word."""
    text = html.unescape(_TAG.sub(" ", content))
    words = set().union(*(spellings(word, locale) for word in set(_WORD.findall(text))))
    return " ".join(sorted(words | {f"{number}{unit.lower()}" for number, unit in _AMOUNT.findall(text)}))


def improve(index: dict, locale: str, descriptions: dict[str, str], weights: dict[str, float]) -> dict:
    """The search index with descriptions, other spellings and weights; both dictionaries by the page's address."""
    fields = index["config"]["fields"]
    fields["description"] = {"boost": _DESCRIPTION}
    for name in _FOLDED:
        fields[f"{name}_folded"] = {"boost": fields[name]["boost"] / 2}
    for entry in index["docs"]:
        page, _, section = entry["location"].partition("#")
        if not section and page in descriptions:
            entry["description"] = descriptions[page]
        for name in _FOLDED:
            if words := folded(entry.get(name, ""), locale):
                entry[f"{name}_folded"] = words
        if weights.get(page, 1.0) != 1.0:
            entry.setdefault("boost", weights[page])
    return index


_descriptions: dict[str, str] = {}
_weights: dict[str, float] = {}


@event_priority(0)
def on_env(env, config, files):
    _descriptions.clear()
    _weights.clear()
    for page in (file.page for file in files.documentation_pages() if file.page):
        _descriptions[page.url] = str(page.meta.get("description") or "")
        _weights[page.url] = _weight(page)
    return env


def _weight(page) -> float:
    if not getattr(page, "furniture", None) or not page.furniture.category or page.is_index:
        return _NO_ARTICLE
    return _WITHIN_A_FOLDER if "/" in page.file.src_uri else 1.0


# After the search plugin has written its index.
@event_priority(-100)
def on_post_build(config) -> None:
    path = Path(config.site_dir) / "search" / "search_index.json"
    if path.is_file():
        index = improve(json.loads(path.read_text(encoding="utf-8")), config.extra["locale"], _descriptions, _weights)
        path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
