"""Which source stands behind a record, one of its fields, or a part of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from macros import yamlfile
from macros.dataset import Collection, Dataset
from macros.estimator import PARTS
from macros.findings import DataErrors, Finding, suggest
from macros.records import Source, Sourced
from macros.run import PartRow, either

PATH = "data/parts.yml"


@dataclass(frozen=True)
class Citations:
    """The sources of `data/`, and which of them stands behind each part of memory (`data/parts.yml`)."""

    sources: Collection[Source]
    parts: Mapping[str, Mapping[str, str]]

    def of_part(self, row: PartRow) -> str | None:
        """The key of the source of a part's formula, for the run's method if that has its own."""
        keys = self.parts.get(row.part, {})
        return keys.get(row.method, keys.get("all"))


def source_key(record: Sourced, field: str | None = None) -> str:
    """The key of the source of a record's field: its own, or that of all. Raises `ValueError`."""
    if field is not None and field not in type(record).columns():
        raise ValueError(f"{record.key} has no field {field!r}{either(field, type(record).columns())}")
    key = record.sources.get(field or "all", record.sources.get("all"))
    if key is None:
        named = ", ".join(sorted(record.sources))
        raise ValueError(f"{record.key} has no source of all its fields; cite one of {named}")
    return key


def load(root: Path, dataset: Dataset) -> Citations:
    """The sources of a dataset and those of the parts. Raises `DataErrors` with every finding of `data/parts.yml`."""
    document = yamlfile.read(root / PATH, PATH)
    findings = []
    for part, keys in document.value.items():
        if part not in PARTS:
            findings.append(Finding(PATH, document.line(part), f"there is no part {part!r}{suggest(part, PARTS)}"))
            continue
        for method, key in keys.items():
            line = document.line(part, method)
            if method != "all" and method not in dataset.methods:
                known = ("all", *dataset.methods.keys())
                findings.append(Finding(PATH, line, f"{part}: no method {method!r}{suggest(method, known)}"))
            if key not in dataset.sources:
                hint = suggest(key, dataset.sources.keys())
                findings.append(Finding(PATH, line, f"{part}.{method}: data/sources.yml has no {key!r}{hint}"))
    if findings:
        raise DataErrors(findings)
    return Citations(dataset.sources, document.value)
