"""What somebody gave, as it stands in an error message."""

from __future__ import annotations

_LONGEST = 60


def shown(value: object) -> str:
    """A value as Python writes it, cut when long: a message stays one line that can be read."""
    text = f"{value!r}"
    return text if len(text) <= 2 * _LONGEST else text[:_LONGEST] + "…"
