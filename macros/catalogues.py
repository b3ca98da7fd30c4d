"""Whether the message catalogues have the same keys and placeholders in each language, and say nothing that pages may not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from macros import pages, prose, yamlfile
from macros.findings import DataErrors, Finding, suggest
from macros.glossary import PATH as GLOSSARY
from macros.glossary import Term
from macros.language import CODES, placeholders
from macros.prose import Discouraged, discouraged

FOLDERS = ("macros/messages", "overrides/messages")


def findings(root: Path, words: Mapping[str, list[Discouraged]]) -> Iterator[Finding]:
    """What a catalogue lacks, has alone, says with other placeholders than German, or in discouraged words."""
    for folder in FOLDERS:
        documents: dict[str, yamlfile.Document] = {}
        for code in CODES:
            path = f"{folder}/{code}.yml"
            try:
                documents[code] = yamlfile.read(root / path, path)
            except DataErrors as errors:
                yield from errors.findings
                continue
            if not isinstance(documents[code].value, dict):
                yield Finding(path, 1, "expected messages by key")
                del documents[code]
                continue
            yield from _wrong_messages(documents[code], words.get(code, []))
        if len(documents) == len(CODES):
            yield from _differences(documents)


def _wrong_messages(document: yamlfile.Document, words: list[Discouraged]) -> Iterator[Finding]:
    for key, message in document.value.items():
        if not isinstance(message, str):
            yield Finding(document.path, document.line(key), f"{key}: expected text")
            continue
        for _, says in discouraged(message, words):
            yield Finding(document.path, document.line(key), f"{key}: {says}")


def _differences(documents: dict[str, yamlfile.Document]) -> Iterator[Finding]:
    first, *others = (documents[code] for code in CODES)
    for other in others:
        line = 1
        for key, message in first.value.items():
            # What is missing has its place behind the message that stands before it in the first language.
            line = other.line(key) if key in other.value else line
            if key not in other.value:
                yield Finding(other.path, line, f"missing {key!r}; {first.path}:{first.line(key)} has {message!r}")
                continue
            wanted, got = placeholders(str(message)), placeholders(str(other.value[key]))
            if wanted != got:
                says = f"{key}: has {_slots(got)}; {first.path}:{first.line(key)} has {_slots(wanted)}"
                yield Finding(other.path, other.line(key), says)
        for key in other.value:
            if key not in first.value:
                hint = suggest(key, first.value)
                yield Finding(other.path, other.line(key), f"{first.path} has no {key!r}{hint}")


def terms(
    glossary: Sequence[Term], boxes: Collection[int] | None, words: Mapping[str, list[Discouraged]]
) -> Iterator[Finding]:
    """What is wrong with the words of the glossary, found as in a page: each form and explanation is a line of one."""
    for code in CODES:
        texts = [(term, text) for term in glossary for text in (term.forms[code], term.means[code])]
        page = pages.parse("\n".join(text for _, text in texts).encode("utf-8"), f"docs/{code}/{GLOSSARY}")
        for finding in prose.findings(page, boxes, words):
            term = texts[finding.line - 1][0]
            yield Finding(GLOSSARY, term.line, f"{term.key}.{code}: {finding.message}", finding.warning)


def _slots(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "no placeholders"
