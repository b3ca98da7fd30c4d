"""Recipe keys as options of a command line: `--sequence-length 4096` for `sequence_length`."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from macros.estimator import Recipe
from macros.records import scalar

RECORDS = {"model": "a key of data/models.yml", "gpu": "a key of data/gpus.yml", "preset": "a key of data/presets.yml"}


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """An option for the model, the card, the preset and every recipe key."""
    group = parser.add_argument_group("recipe", "keys that are not given keep the preset's or the house recipe's value")
    for name, meaning in RECORDS.items():
        group.add_argument(f"--{name}", help=meaning)
    group.add_argument("--config", type=Path, help="a config.json instead of a model")
    for field in fields(Recipe):
        group.add_argument(f"--{field.name.replace('_', '-')}", metavar=str(field.type).split(" ")[0].upper())


def recipe_keys(options: argparse.Namespace) -> dict[str, Any]:
    """What was typed, as `recipes.estimate_keys` takes it; a list is written with commas.

    Raises ValueError, one sentence, for a configuration that cannot be read.
    """
    keys: dict[str, Any] = {name: getattr(options, name) for name in RECORDS if getattr(options, name) is not None}
    for field in fields(Recipe):
        text = getattr(options, field.name)
        if text is None:
            continue
        if field.name == "modules_to_save" or (field.name == "target_modules" and text != "all-linear"):
            keys[field.name] = [part for part in text.split(",") if part]
        else:
            keys[field.name] = text if str(field.type).startswith("str") else scalar(text)
    if options.config is not None:
        try:
            keys["config"] = json.loads(options.config.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{options.config}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{options.config} is not JSON: {error}") from None
    return keys
