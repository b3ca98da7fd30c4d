"""YAML as plain text values with the line of every path, and without YAML's surprises.

Every scalar stays a string (`no`, `1.10` and `12:30` mean what they say; types convert in `records.py`),
and equal keys, aliases and bottomless nesting are findings instead of a silent choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from macros.findings import DataErrors, Finding, quote

# libyaml's loader where PyYAML was built with it: about ten times faster, same values and lines.
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_MOST_BYTES = 4_000_000
_DEEPEST = 12


@dataclass(frozen=True)
class Document:
    """The value of one YAML text (mappings, lists, strings) and where its parts stand."""

    path: str
    value: Any
    lines: dict[tuple[str | int, ...], int]

    def line(self, *keys: str | int) -> int:
        """The line of a path of keys and list positions, or that of its nearest parent that exists."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)


def read(file: Path, path: str | None = None) -> Document:
    """The document of a file; `path` is the name that findings show. Raises `DataErrors`."""
    shown = path or str(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise DataErrors([Finding(shown, 0, f"is larger than {_MOST_BYTES} bytes")])
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataErrors([Finding(shown, line, "is not UTF-8 text")]) from None
    except OSError as error:
        raise DataErrors([Finding(shown, 0, f"cannot be read: {error.strerror}")]) from None
    return parse(text, shown)


def parse(text: str, path: str, first_line: int = 1) -> Document:
    """The document of a text that begins at `first_line` of the file `path`. Raises `DataErrors`."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = first_line + (mark.line if mark else 0)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable text"
        raise DataErrors([Finding(path, line, f"not valid YAML: {problem}")]) from None
    lines: dict[tuple[str | int, ...], int] = {}
    findings: list[Finding] = []
    seen: set[int] = set()

    def value_of(node: yaml.Node, keys: tuple[str | int, ...]) -> Any:
        line = node.start_mark.line + first_line
        # The same node object twice is an alias: it hides where a value comes from and can grow without bound.
        if id(node) in seen:
            line = lines.get(keys, lines.get(keys[:-1], line))  # the node itself stands where the anchor is
            findings.append(Finding(path, line, "an alias (*name) is not allowed; write the value out"))
            return ""
        lines.setdefault(keys, line)
        seen.add(id(node))
        if len(keys) > _DEEPEST:
            findings.append(Finding(path, line, f"nested more than {_DEEPEST} levels deep"))
            return ""
        if isinstance(node, yaml.SequenceNode):
            return [value_of(item, (*keys, place)) for place, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return node.value
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key, key_line = key_node.value, key_node.start_mark.line + first_line
            if not isinstance(key, str):
                findings.append(Finding(path, key_line, "a key must be text"))
            elif key in mapping:
                first = lines[(*keys, key)]
                findings.append(Finding(path, key_line, f"{quote(key)} stands here a second time; first in line {first}"))
            else:
                lines[(*keys, key)] = key_line
                mapping[key] = value_of(value_node, (*keys, key))
        return mapping

    value = {} if root is None else value_of(root, ())
    if findings:
        raise DataErrors(findings)
    return Document(path, value, lines)
