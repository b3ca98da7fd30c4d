"""Recipe keys as options of a command line: `--sequence-length 4096` for `sequence_length`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from macros.estimator import QUESTIONS, Recipe
from macros.findings import quote, suggest
from macros.records import scalar

_METAVARS = {"str": "NAME", "int": "NUMBER", "float": "NUMBER", "bool": "true|false"}
# Of these, each training configuration in JSON has one, and no config.json of a model.
TRAINING_KEYS = ("model_name_or_path", "base_model", "method", "per_device_train_batch_size", "stage")
RECORDS = {"model": "a key of data/models.yml", "gpu": "a key of data/gpus.yml", "preset": "a key of data/presets.yml"}


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line, like every other error, and which takes no shortened options."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, allow_abbrev=False, **settings)

    def parse_known_args(self, *arguments: Any, **settings: Any) -> Any:
        found, unknown = super().parse_known_args(*arguments, **settings)
        if unknown:
            wrong = unknown[0].partition("=")[0]
            near = suggest(wrong, re.findall(r"--[a-z][a-z0-9-]*", self.format_usage()))
            self.error(f"there is no option {quote(wrong)}{near}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"error: {' '.join(message.split())}; see {self.prog} --help\n")
        sys.exit(2)


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """An option for the model, the card, the preset and every recipe key."""
    group = parser.add_argument_group("recipe", "keys that are not given keep the preset's or the house recipe's value")
    for name, meaning in RECORDS.items():
        group.add_argument(f"--{name}", help=meaning)
    group.add_argument("--config", type=Path, help="a config.json instead of a model; for estimate also a training configuration")
    for field in fields(Recipe):
        group.add_argument(f"--{field.name.replace('_', '-')}", metavar=_METAVARS.get(str(field.type), "NAMES"))
    questions = parser.add_argument_group("questions", "what changes nothing about a training step")
    for name in QUESTIONS:
        questions.add_argument(f"--{name.replace('_', '-')}", metavar="NUMBER")


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
    for name in QUESTIONS:
        if getattr(options, name) is not None:
            keys[name] = scalar(getattr(options, name))
    if options.config is not None:
        try:
            keys["config"] = _config(options.config)
        except OSError as error:
            raise ValueError(f"{options.config}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{options.config} is not JSON: {error}") from None
    return keys


def _config(file: Path) -> Any:
    """A config.json as it is, and the text of anything else: a training configuration."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".json":
        return text
    found = json.loads(text)
    training = isinstance(found, dict) and any(key in found for key in TRAINING_KEYS)
    return text if training else found
