"""The estimator's own recipe as JSON, YAML or as the command `python -m macros estimate --model … --method …`."""

from __future__ import annotations

from .reading import Reading
from .text import FALSE, TRUE, lowered, number

LISTS = ("target_modules", "modules_to_save")
TEXTS = ("model", "gpu", "preset", "transformers", "method")


def read_own(reading: Reading) -> None:
    """Every key as it stands; the estimator itself names what is wrong with a value."""
    named = reading.raw("preset")
    if isinstance(named, str) and named in reading.known["presets"]:
        reading.preset = named
    for key in reading.tree.value:
        value = reading.raw(key)
        if value is None or key in ("words", "config"):
            continue
        typed = key.replace("-", "_")
        reading.became(key, {typed: own_value(typed, value)})


def own_value(key: str, value: object) -> object:
    """A value of a recipe from its text."""
    if not isinstance(value, str) or key in TEXTS or value == "all-linear":
        return value
    if key in LISTS:
        return [name for name in value.split(",") if name]
    if lowered(value) in ("true", "false"):
        return lowered(value) in TRUE and lowered(value) not in FALSE
    found = number(value)
    return value if found is None else found
