"""Who runs the site, from `data/site.yml`: what the legal pages say, and whether it may be published.

Every field may be empty; what is empty is said to be missing, never filled with something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from macros import yamlfile
from macros.figures import element, joined
from macros.findings import DataErrors, Finding, quote, suggest
from macros.language import CODES, Language

PATH = "data/site.yml"

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "operator": ("name", "address", "represented_by"),
    "contact": ("email", "phone"),
    "host": ("name", "address", "log_days"),
}
_NEEDED = (("operator", "name"), ("operator", "address"), ("contact", "email"))
"""Without these nobody could be reached who answers for the site."""

_EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+\.[a-z]{2,}", re.IGNORECASE)
_DAYS = re.compile(r"[1-9]\d{0,3}")
_LINK = re.compile(r"https://[^\s<>\"]+")


@dataclass(frozen=True)
class Site:
    """What the operator has entered: fields by section, and by category and language what an article ends with."""

    fields: Mapping[str, Mapping[str, str]]
    offers: Mapping[str, Mapping[str, Mapping[str, str]]]
    document: yamlfile.Document

    def value(self, section: str, name: str) -> str:
        return self.fields[section][name]

    def offer(self, category: str | None, code: str) -> Mapping[str, str] | None:
        """Text and link that an article of a category ends with, if the operator has entered any."""
        return self.offers.get(category or "", {}).get(code)


def load(root: Path) -> Site:
    """The record of the site. Raises `DataErrors` with every finding."""
    document = yamlfile.read(root / PATH, PATH)
    value = document.value if isinstance(document.value, dict) else {}
    wrong: list[tuple[tuple[str, ...], str]] = []
    known = (*_FIELDS, "call_to_action")
    wrong += [((name,), f"unknown key {quote(name)}{suggest(name, known)}") for name in value if name not in known]
    fields = {section: _section(section, names, value.get(section), wrong) for section, names in _FIELDS.items()}
    offers = _offers(value.get("call_to_action"), wrong)
    if wrong:
        raise DataErrors([Finding(PATH, document.line(*place), f"{'.'.join(place)}: {says}") for place, says in wrong])
    return Site(fields, offers, document)


def _section(
    section: str, names: tuple[str, ...], given: Any, wrong: list[tuple[tuple[str, ...], str]]
) -> dict[str, str]:
    given = {} if given in (None, "") else given
    if not isinstance(given, dict):
        wrong.append(((section,), f"expected {', '.join(names)}"))
        given = {}
    wrong += [((section, name), f"unknown key{suggest(name, names)}") for name in given if name not in names]
    fields = {name: given.get(name, "") for name in names}
    for name, text in fields.items():
        if not isinstance(text, str) or "\n" in text or len(text) > 200:
            wrong.append(((section, name), "expected at most 200 characters on one line"))
        elif text and name == "email" and not _EMAIL.fullmatch(text):
            wrong.append(((section, name), f"expected an address like name@example.org, got {quote(text)}"))
        elif text and name == "log_days" and not _DAYS.fullmatch(text):
            wrong.append(((section, name), f"expected a number of days, got {quote(text)}"))
    return {name: text if isinstance(text, str) else "" for name, text in fields.items()}


def _offers(given: Any, wrong: list[tuple[tuple[str, ...], str]]) -> dict[str, dict[str, dict[str, str]]]:
    if given in (None, "", {}):
        return {}
    if not isinstance(given, dict):
        wrong.append((("call_to_action",), "expected texts and links by category and language"))
        return {}
    for category, versions in given.items():
        place = ("call_to_action", category)
        if not isinstance(versions, dict) or set(versions) != set(CODES):
            wrong.append((place, f"expected a text and a link for each of {', '.join(CODES)}"))
            continue
        for code, offer in versions.items():
            if not isinstance(offer, dict) or set(offer) != {"text", "link"} or not offer["text"]:
                wrong.append(((*place, code), "expected text and link"))
            elif not isinstance(offer["link"], str) or not _LINK.fullmatch(offer["link"]):
                wrong.append(((*place, code, "link"), f"expected an address like https://example.org/, got {quote(offer['link'])}"))
    return given


def missing(site: Site) -> list[Finding]:
    """What has to be entered before the site may be published."""
    return [
        Finding(PATH, site.document.line(*place), f"{'.'.join(place)} is empty; enter it before the site is published")
        for place in _NEEDED
        if not site.value(*place)
    ]


def operator(language: Language, site: Site) -> Markup:
    """Name and address of who runs the site, or the sentence that they have not been entered."""
    if missing(site):
        return element("p", language.text("site.no_operator"), class_="vg-missing")
    name, address, by = (site.value("operator", key) for key in ("name", "address", "represented_by"))
    email, phone = site.value("contact", "email"), site.value("contact", "phone")
    lines: list[object] = [element("strong", name), *(part.strip() for part in address.split(","))]
    lines += [language.text("site.represented_by", name=by)] if by else []
    lines += [Markup("{}: {}").format(language.text("site.email"), element("a", email, href=f"mailto:{email}"))]
    lines += [f"{language.text('site.phone')}: {phone}"] if phone else []
    return element("address", Markup("<br>").join(joined([line]) for line in lines), class_="vg-operator")


def host(language: Language, site: Site) -> Markup:
    """Who serves the pages and how long it keeps its logs, or that this has not been entered."""
    name, address, days = (site.value("host", key) for key in ("name", "address", "log_days"))
    if not name:
        return element("p", language.text("site.no_host"), class_="vg-missing")
    told = [language.text("site.host", name=f"{name}, {address}" if address else name)]
    told.append(language.text("site.log_days", days=days) if days else language.text("site.no_log_days"))
    return element("p", " ".join(told))
