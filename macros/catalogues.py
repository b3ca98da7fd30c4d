"""Whether the message catalogues of the three languages have the same keys with the same placeholders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from macros import yamlfile
from macros.findings import DataErrors, Finding, suggest
from macros.language import CODES, placeholders

FOLDERS = ("macros/messages", "overrides/messages")


def findings(root: Path) -> Iterator[Finding]:
    """What one language's catalogue lacks, has alone, or says with other placeholders than German."""
    for folder in FOLDERS:
        documents: dict[str, yamlfile.Document] = {}
        for code in CODES:
            path = f"{folder}/{code}.yml"
            try:
                documents[code] = yamlfile.read(root / path, path)
            except DataErrors as errors:
                yield from errors.findings
                continue
            yield from _not_text(documents[code])
        if len(documents) == len(CODES):
            yield from _differences(documents)


def _not_text(document: yamlfile.Document) -> Iterator[Finding]:
    for key, message in document.value.items() if isinstance(document.value, dict) else ():
        if not isinstance(message, str):
            yield Finding(document.path, document.line(key), f"{key}: expected text")


def _differences(documents: dict[str, yamlfile.Document]) -> Iterator[Finding]:
    first, *others = (documents[code] for code in CODES)
    for other in others:
        for key, message in first.value.items():
            if key not in other.value:
                yield Finding(other.path, 0, f"missing {key!r}; {first.path}:{first.line(key)} has {message!r}")
                continue
            wanted, got = placeholders(str(message)), placeholders(str(other.value[key]))
            if wanted != got:
                says = f"{key}: has {_slots(got)}; {first.path}:{first.line(key)} has {_slots(wanted)}"
                yield Finding(other.path, other.line(key), says)
        for key in other.value:
            if key not in first.value:
                hint = suggest(key, first.value)
                yield Finding(other.path, other.line(key), f"{first.path} has no {key!r}{hint}")


def _slots(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names)) or "no placeholders"
