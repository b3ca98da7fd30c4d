"""What somebody asks beyond the recipe: keys that change nothing about a training step."""

from __future__ import annotations

from .disk import CHECKPOINTS_KEPT
from .wording import shown

QUESTIONS = ("checkpoints_kept", "dataset_tokens")

# Above these a question is a typing mistake.
MOST = {"checkpoints_kept": 10_000, "dataset_tokens": 10**14}
DEFAULTS = {"checkpoints_kept": CHECKPOINTS_KEPT, "dataset_tokens": 0}


def questions_from_keys(keys: dict[str, object]) -> dict[str, int]:
    """Every question with its answer, given or by default.

    Raises ValueError with one sentence that names the key and what is allowed.
    """
    asked = {}
    for key in QUESTIONS:
        value = keys.get(key, DEFAULTS[key])
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value > MOST[key]:
            raise ValueError(f"{key} must be a whole number from 0 to {MOST[key]}, got {shown(value)}")
        asked[key] = value
    return asked
