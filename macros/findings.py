"""What is wrong with a file, and where: the one shape of every error that an author or a contributor sees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_LONGEST_QUOTE = 60


@dataclass(frozen=True, order=True)
class Finding:
    """One mistake at one place; `line` 0 stands for the file as a whole.

    The message reads `what is wrong; what would be right`: lower case, no full stop, typed text in quotes.
    A warning is reported like an error but does not fail the check.
    """

    path: str
    line: int
    message: str
    warning: bool = False

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {'warning: ' if self.warning else ''}{self.message}"


class DataErrors(ValueError):
    """All mistakes of all data files of one load, sorted by file and line."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(set(findings)))
        super().__init__("\n".join(str(finding) for finding in self.findings))


def quote(value: object) -> str:
    """What somebody typed, as one safe line: quoted, control characters escaped, cut when long."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str) and len(value) > _LONGEST_QUOTE:
        return repr(value[:_LONGEST_QUOTE] + "…")
    text = repr(value)
    return text if len(text) <= 2 * _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…"


def suggest(name: object, names: Iterable[object]) -> str:
    """`; did you mean 'x'?` for the nearest of the names, or nothing when none is near."""
    from difflib import get_close_matches  # only mistakes pay for the import

    near = get_close_matches(str(name)[:_LONGEST_QUOTE], [str(known) for known in names], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
