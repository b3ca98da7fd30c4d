"""The terms of the site in three languages, from `data/glossary.yml` to the page that explains them.

A term's key is its anchor in every language, so that a link to it keeps its place after a language switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from macros import yamlfile
from macros.figures import element, joined
from macros.findings import DataErrors, Finding, quote, suggest
from macros.language import CODES, Language

PATH = "data/glossary.yml"
PAGE = "glossary.md"

_KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SEE = re.compile(r"[\w/.-]+\.md(#[\w-]+)?")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Term:
    """One term: its form and its explanation by language, and the page that says more."""

    key: str
    group: str
    forms: Mapping[str, str]
    means: Mapping[str, str]
    see: str | None
    line: int


def load(root: Path) -> tuple[Term, ...]:
    """Every term, in the file's order. Raises `DataErrors` with every finding."""
    document = yamlfile.read(root / PATH, PATH)
    findings: list[Finding] = []
    terms: list[Term] = []
    for key, value in document.value.items() if isinstance(document.value, dict) else ():
        wrong = list(_wrong(key, value))
        findings += [Finding(PATH, document.line(key, *place), f"{key}: {says}") for place, says in wrong]
        if not wrong:
            forms, means = ({code: value[code][part] for code in CODES} for part in ("term", "means"))
            terms.append(Term(key, value["group"], forms, means, value.get("see"), document.line(key)))
    if findings:
        raise DataErrors(findings)
    return tuple(terms)


def _wrong(key: str, value: object) -> list[tuple[tuple[str, ...], str]]:
    if not _KEY.fullmatch(key):
        return [((), "expected lower-case ASCII words with hyphens, like gradient-checkpointing")]
    if not isinstance(value, dict):
        return [((), f"expected a group and the forms in {', '.join(CODES)}")]
    known = ("group", "see", *CODES)
    found = [((name,), f"unknown key {quote(name)}{suggest(name, known)}") for name in value if name not in known]
    if not isinstance(value.get("group"), str) or not value["group"]:
        found.append(((), "expected a group"))
    if "see" in value and not (isinstance(value["see"], str) and _SEE.fullmatch(value["see"])):
        found.append((("see",), f"see: expected a page like lora-vs-qlora.md#quality, got {quote(value['see'])}"))
    for code in CODES:
        texts = value.get(code)
        if not isinstance(texts, dict) or set(texts) != {"term", "means"} or not all(map(_is_text, texts.values())):
            found.append(((code,), f"{code}: expected term and means"))
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def glossary(language: Language, terms: tuple[Term, ...], group: str) -> Markup:
    """The terms of one group with what the other languages call them, each under a heading with its key as anchor."""
    groups = list(dict.fromkeys(term.group for term in terms))
    if group not in groups:
        raise ValueError(f"{PATH} has no group {quote(group)}{suggest(group, groups)}; there are {', '.join(groups)}")
    return element("div", joined(_entry(language, term) for term in terms if term.group == group), class_="vg-terms")


def _entry(language: Language, term: Term) -> Markup:
    head = element("h3", term.forms[language.code], id=term.key, class_="vg-term")
    means = Markup(_CODE.sub(r"<code>\1</code>", str(escape(term.means[language.code]))))
    more = Markup(" ") + element("a", "", href=f"article:{term.see}") if term.see else Markup()
    return head + _others(language, term) + element("p", means + more)


def _others(language: Language, term: Term) -> Markup:
    """What the other languages say, where they say something else."""
    mine = term.forms[language.code]
    others = [(code, term.forms[code]) for code in CODES if code != language.code and term.forms[code] != mine]
    if not others:
        return Markup()
    named = [
        Markup("{}: {}").format(language.text(f"language.{code}"), element("span", form, lang=code))
        for code, form in others
    ]
    return element("p", Markup(" · ").join(named), class_="vg-term__others")
