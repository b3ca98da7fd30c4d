"""What stands in the calculator's address and in its fields, and the keys that it means: both hold the same short texts.

    read_pairs(data, pairs)      names and texts → keys of `estimate_keys`, and what is wrong with the others
    pairs_of(keys)               keys → names and texts
    number_of(text, whole)       a number as people type it, with a comma or a point

A name that nobody knows or a value that cannot be is named and left out; the rest is kept. The names are those of the
recipe, but for the ones that people see most, which are shorter; addresses use them for good. portable.py translates
this file.
"""

from __future__ import annotations

import math

from macros.estimator.architecture import architecture_from_config
from macros.estimator.checks import LIMITS
from macros.estimator.objective import GENERATIONS, OBJECTIVES, REFERENCES
from macros.estimator.questions import MOST, NUMBERS, QUESTIONS
from macros.estimator.recipe import (
    ATTENTIONS,
    DTYPE_BYTES,
    FSDP_VERSIONS,
    KERNELS,
    LOSSES,
    MASTER_GRADIENTS,
    METHODS,
    OPTIMIZERS,
    PARALLELISMS,
    PRECISIONS,
    QUANT_STORAGES,
    QUANTIZATIONS,
    TABLES,
    TRANSFORMERS,
)

# The short name of an address → the key of a recipe or question; every other key is its own name.
SHORT = {
    "batch": "micro_batch_size",
    "length": "sequence_length",
    "accumulation": "gradient_accumulation_steps",
    "checkpointing": "gradient_checkpointing",
    "gpus": "num_gpus",
    "rank": "lora_r",
    "dropout": "lora_dropout",
    "targets": "target_modules",
    "tokens": "dataset_tokens",
    "price": "price_per_hour",
    "kept": "checkpoints_kept",
}

RECORDS = {"model": "models", "gpu": "gpus", "preset": "presets"}
CHOICES = {
    "method": METHODS,
    "precision": PRECISIONS,
    "base_dtype": tuple(DTYPE_BYTES),
    "optim": OPTIMIZERS,
    "attention": ATTENTIONS,
    "loss": LOSSES,
    "kernels": KERNELS,
    "adapter_dtype": ("float32", "bfloat16"),
    "quantization": QUANTIZATIONS,
    "master_gradients": MASTER_GRADIENTS,
    "transformers": TRANSFORMERS,
    "kbit_tables": ("float32", "bfloat16"),
    "parallelism": PARALLELISMS,
    "quant_storage": QUANT_STORAGES,
    "objective": OBJECTIVES,
    "reference": REFERENCES,
    "generation": GENERATIONS,
}
FLAGS = (
    "foreach",
    "gradient_checkpointing",
    "checkpoint_offload",
    "use_dora",
    "double_quant",
    "prepare_kbit",
    "keep_outputs",
    "padding",
    "use_reentrant",
    "quantized_inputs_kept",
    "offload_optimizer",
    "offload_params",
)
SHARES = ("lora_dropout", "trained_token_share", "vllm_memory_share")
LISTS = ("target_modules", "modules_to_save")
# Keys of the page itself: the unit of its amounts, and the card of its question "what can I train?".
UNITS = ("gb", "gib")

# What may follow a number of tokens: people write 50M, 50 Mio., 50 milyon.
_SCALES = {"k": 10**3, "K": 10**3, "M": 10**6, "m": 10**6, "Mio": 10**6, "Mio.": 10**6, "million": 10**6, "milyon": 10**6,
           "B": 10**9, "b": 10**9, "Mrd": 10**9, "Mrd.": 10**9, "billion": 10**9, "milyar": 10**9}
_DIGITS = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_MOST_DIGITS = 15  # within 2^53


def read_pairs(data: dict[str, object], pairs: list[list[str]], configs: dict[str, object] | None = None) -> dict[str, object]:
    """{"keys", "problems": [{"name", "key", "kind", "value", "least", "most"}]} of names and texts.

    configs   what a config.json that somebody pasted holds, by the text of its pair: JSON is read outside

    A problem's kind is unknown (no such name), value (not one that is allowed), number (no number, or out of range) or
    config (no model that can be calculated). Empty texts are left out.
    """
    keys: dict[str, object] = {}
    problems = []
    for name, text in pairs:
        if text == "":
            continue
        key = SHORT.get(name, name)
        problem = _problem(name, key, text)
        if key == "config":
            found = _config(text, configs if configs is not None else {}, problem)
        elif key in RECORDS:
            found = text if text in data[RECORDS[key]] else None
        else:
            found = _value(key, text, problem)
        if found is None:
            problems.append(problem)
        else:
            keys[key] = found
    if "model" in keys and "config" in keys:
        del keys["model"]
    return {"keys": keys, "problems": problems}


def pairs_of(keys: dict[str, object]) -> list[list[str]]:
    """Names and texts of keys, in the order of the keys; a config's text is left to whoever writes JSON."""
    names = {key: name for name, key in SHORT.items()}
    pairs = []
    for key, value in keys.items():
        if value is None or key == "config":
            continue
        pairs.append([names.get(key, key), text_of(value)])
    return pairs


def text_of(value: object) -> str:
    """A value as it stands in an address."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(value) if value else "none"
    if isinstance(value, str):
        return value
    text = f"{value}"
    return text if number_of(text) is not None else text + "0"  # three decimals could be thousands


def short_name(key: str) -> str:
    """The name of a key in addresses and fields."""
    for name, long in SHORT.items():
        if long == key:
            return name
    return key


def long_name(name: str) -> str:
    """The key that a name of an address or a field stands for."""
    return SHORT.get(name, name)


def number_of(text: str, whole: bool = False) -> float | None:
    """A number ≥ 0 as people type it: digits with at most one comma or point; None for anything else.

    Three digits after a comma or a point are thousands where the number is `whole`; elsewhere nobody can know.
    """
    plain = text.replace("\u00a0", "").replace("\u202f", "").replace(" ", "").replace(",", ".")
    groups = plain.split(".")
    if len(groups) > 1 and len(groups[0]) in (1, 2, 3) and groups[0] != "0" and all(len(group) == 3 for group in groups[1:]):
        if not whole:
            return None
        plain = "".join(groups)
    before, point, rest = plain.partition(".")
    digits = before + rest
    if digits == "" or (point != "" and rest == "") or len(digits) > _MOST_DIGITS:
        return None
    number = 0
    for digit in digits:
        if digit not in _DIGITS:
            return None
        number = number * 10 + _DIGITS.index(digit)
    if rest == "":
        return number
    return number / 10 ** len(rest)


def _scaled(text: str) -> str:
    """A number of tokens with its word, as plain digits; anything else as it is."""
    for word in sorted(_SCALES, key=lambda word: -len(word)):
        if text.endswith(word):
            number = number_of(text.removesuffix(word))
            return text if number is None else f"{math.floor(number * _SCALES[word] + 0.5)}"
    return text


def _value(key: str, text: str, problem: dict[str, object]) -> object:
    """The value of a recipe key or question, None where the text is none; says in `problem` what is wrong."""
    if key in CHOICES:
        return text if text in CHOICES[key] else None
    if key in FLAGS:
        return True if text == "true" else False if text == "false" else None
    if key == "fsdp_version":
        number = number_of(text)
        return number if number in FSDP_VERSIONS else None
    if key in LISTS:
        return _list(key, text)
    if key in LIMITS:
        return _number(text, 1, LIMITS[key], True, problem)
    if key in SHARES:
        number = _number(text, 0, 1, False, problem)
        beyond = (number == 1 and key != "trained_token_share") or (number == 0 and key == "trained_token_share")
        return None if beyond else number
    if key in QUESTIONS:
        if key == "dataset_tokens":
            text = _scaled(text)
        return _number(text, 0, MOST[key], key not in NUMBERS, problem)
    problem["kind"] = "unknown"
    return None


def _number(text: str, least: int, most: int, whole: bool, problem: dict[str, object]) -> float | None:
    problem["kind"] = "whole" if whole else "number"
    problem["least"] = least
    problem["most"] = most
    number = number_of(text, whole)
    if number is None or number < least or number > most or (whole and not isinstance(number, int)):
        return None
    return number


def _list(key: str, text: str) -> object:
    if key == "target_modules" and text == "all-linear":
        return text
    if key == "modules_to_save" and text == "none":
        return []
    names = [name.replace(" ", "") for name in text.split(",")]
    names = [name for name in names if name != ""]
    if not names or (key == "modules_to_save" and not all(name in TABLES for name in names)):
        return None
    # In the order of the recipe: the two lists are one choice.
    return [name for name in TABLES if name in names] if key == "modules_to_save" else names


def _config(text: str, configs: dict[str, object], problem: dict[str, object]) -> object:
    """The object of a config.json, if the estimator takes it; the sentence of what it says otherwise is in `problem`."""
    problem["kind"] = "config"
    config = configs.get(text)
    if not isinstance(config, dict):
        return None
    return config


def _problem(name: str, key: str, text: str) -> dict[str, object]:
    return {"name": name, "key": key, "kind": "value", "value": text if len(text) <= 40 else text[:40] + "…", "least": 0, "most": 0}


def shape_of(config: dict[str, object]) -> dict[str, object]:
    """The part of a configuration that makes the same architecture: what an address has to carry.

    Raises ValueError, one sentence, for one that the estimator does not take.
    """
    shape = config
    wanted = architecture_from_config(config)
    for key in list(config):
        rest = {name: value for name, value in shape.items() if name != key}
        if _makes(rest, wanted):
            shape = rest
    return shape


def _makes(config: dict[str, object], wanted: object) -> bool:
    try:
        return architecture_from_config(config) == wanted
    except ValueError:
        return False
