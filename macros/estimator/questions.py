"""What somebody asks beyond the recipe: keys that change nothing about a training step."""

from __future__ import annotations

from .disk import CHECKPOINTS_KEPT
from .wording import shown

QUESTIONS = ("checkpoints_kept", "dataset_tokens", "epochs", "price_per_hour")

# Above these a question is a typing mistake.
MOST = {"checkpoints_kept": 10_000, "dataset_tokens": 10**14, "epochs": 10_000, "price_per_hour": 10**6}
DEFAULTS = {"checkpoints_kept": CHECKPOINTS_KEPT, "dataset_tokens": 0, "epochs": 1, "price_per_hour": 0}
# Those that need not be whole.
NUMBERS = ("epochs", "price_per_hour")


def questions_from_keys(keys: dict[str, object]) -> dict[str, float]:
    """Every question with its answer, given or by default; dataset_tokens and price_per_hour are 0 where nobody asked.

    Raises ValueError with one sentence that names the key and what is allowed.
    """
    asked = {}
    for key in QUESTIONS:
        value = keys.get(key, DEFAULTS[key])
        number = isinstance(value, (int, float)) if key in NUMBERS else isinstance(value, int)
        if isinstance(value, bool) or not number or not 0 <= value <= MOST[key]:
            what = "number" if key in NUMBERS else "whole number"
            raise ValueError(f"{key} must be a {what} from 0 to {MOST[key]}, got {shown(value)}")
        asked[key] = value
    return asked
