"""What the figures of a table or chart hold for: conditions that are not visible in it, and what stands behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from macros.estimator import units
from macros.estimator.fit import COMFORTABLE_PERCENT
from macros.language import Language, exact
from macros.records import Gpu
from macros.run import Run

# The order of a caption; recipe keys that are not named here stay out of it.
_ORDER = (
    "model",
    "method",
    "gpu",
    "micro_batch_size",
    "sequence_length",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "checkpoint_offload",
    "optim",
    "foreach",
    "loss",
    "trained_token_share",
    "precision",
    "base_dtype",
    "master_gradients",
    "attention",
    "kernels",
    "lora_r",
    "target_modules",
    "use_dora",
    "modules_to_save",
    "lora_dropout",
    "adapter_dtype",
    "quantization",
    "double_quant",
    "prepare_kbit",
    "keep_outputs",
    "padding",
    "transformers",
    "use_reentrant",
    "kbit_tables",
    "quantized_inputs_kept",
    "preset",
)

# Conditions that are only worth a word where a run differs from what the house recipe has.
_QUIET: Mapping[str, Any] = {
    "gradient_accumulation_steps": 1,
    "checkpoint_offload": False,
    "kernels": "none",
    "use_dora": False,
    "modules_to_save": [],
    "quantization": "nf4",
    "lora_dropout": 0,
    "adapter_dtype": "float32",
    "double_quant": True,
    "prepare_kbit": True,
    "keep_outputs": False,
    "padding": False,
    "master_gradients": "param",
    "trained_token_share": 1,
    "transformers": "5",
    "use_reentrant": False,
    "kbit_tables": "float32",
    "quantized_inputs_kept": False,
    "preset": "transformers-peft",
}
# Columns that depend on what a card offers.
_OF_CARD = ("memory", "memory_mib", "verdict", "headroom")
_FP32_WEIGHTS = ("fp32-autocast", "fp32")


def value_text(language: Language, key: str, value: Any) -> str:
    """A recipe value in the page's language; names of options stay as they are."""
    if value is None:
        return language.text("value.none")
    if isinstance(value, bool):
        return language.text("value.yes" if value else "value.no")
    if key == "trained_token_share":
        return language.percent(exact(value))
    if isinstance(value, (int, float)):
        return language.number(exact(value))
    if isinstance(value, (list, tuple)):
        return language.listing(str(item) for item in value)
    if hasattr(value, "name"):
        return value.name
    key = f"{key}.{value}"
    return language.text(key) if language.has(key) else str(value)


def axis_text(language: Language, run: Run, key: str) -> str:
    """The value of one recipe key of a run, as a heading or in a list."""
    if key == "model":
        return run.name
    return value_text(language, key, run.value(key))


def heading_text(language: Language, run: Run, key: str) -> str:
    """The value of a recipe key as a column's heading; numbers and yes or no carry the name of the key."""
    value = run.recipe.get(key)
    if isinstance(value, (bool, int, float)):
        return _named(language, key, value)
    return axis_text(language, run, key)


def conditions(language: Language, runs: Sequence[Run], shown: Collection[str]) -> list[str]:
    """What all figures hold for, without the keys that are `shown` as rows or columns.

    A key whose value differs between the runs, though it is not shown, names where each value holds.
    """
    phrases = [phrase for key in _ORDER if key not in shown if (phrase := _condition(language, runs, key, shown))]
    return [*phrases, language.plural("unit.gpus", 1, number=language.number(1))]


def _condition(language: Language, runs: Sequence[Run], key: str, shown: Collection[str]) -> str | None:
    # None stands for: does not apply to this run's method, or goes without saying.
    said = {run: _said(language, run, key) for run in runs}
    values = list(dict.fromkeys(value for value in said.values() if value))
    if not values:
        return None
    if len(values) > 1 or not all(said[run] or run.recipe.get(key) is None for run in runs):
        where = _axis_that_explains(language, runs, said, shown)
        if where is None:
            return _worded(language, key, " / ".join(values))
        values = [
            language.text("caption.varied", value=value, where=language.listing(where[value])) for value in values
        ]
    return _worded(language, key, language.listing(values))


def _axis_that_explains(
    language: Language, runs: Sequence[Run], said: Mapping[Run, str | None], shown: Collection[str]
) -> dict[str, list[str]] | None:
    """For each phrase the values of one shown key where it holds, if one key decides it alone."""
    for key in shown:
        if not all(key in run.recipe for run in runs):
            continue
        where: dict[str, list[str]] = {}
        owner: dict[str, str | None] = {}
        for run in runs:
            value = axis_text(language, run, key)
            if owner.setdefault(value, said[run]) != said[run]:
                break
            phrase = said[run]
            if phrase and value not in where.setdefault(phrase, []):
                where[phrase].append(value)
        else:
            return where
    return None


def _said(language: Language, run: Run, key: str) -> str | None:
    """What a caption says of one key of one run, before it is worded; yes and no are worded already."""
    value = run.recipe.get(key)
    if key == "model":
        return run.name
    if value is None or _goes_without_saying(run, key, value):
        return None
    return _named(language, key, value) if isinstance(value, bool) else axis_text(language, run, key)


def _worded(language: Language, key: str, values: str) -> str:
    """The values of a key as a phrase: Genauigkeit: …; names and whole phrases stand alone."""
    message = f"condition.{key}"
    return language.text(message, value=values) if language.has(message) else values


def _named(language: Language, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return language.text(f"condition.{key}.{'true' if value else 'false'}")
    return language.text(f"condition.{key}", value=value_text(language, key, value))


def _goes_without_saying(run: Run, key: str, value: Any) -> bool:
    if key == "foreach":
        return value == (run.recipe.get("optim") == "adamw_torch")
    if key == "base_dtype":
        return value == ("float32" if run.recipe.get("precision") in _FP32_WEIGHTS else "bfloat16")
    return key in _QUIET and value == _QUIET[key]


def sentences(language: Language, runs: Sequence[Run], shown: Collection[str]) -> list[str]:
    """The whole caption of figures of runs: conditions, evidence, warnings."""
    held = " · ".join(conditions(language, runs, shown))
    lines = [language.text("caption.conditions", conditions=held), _evidence(language, runs, shown)]
    return lines + _warnings(language, runs)


def _warnings(language: Language, runs: Sequence[Run]) -> list[str]:
    """What is not modelled, each once, naming the models where it does not hold for all."""
    lines = []
    for key in dict.fromkeys(key for run in runs for key in run.warnings):
        warning = language.text(f"warning.{key}")
        warned = dict.fromkeys(run.name for run in runs if key in run.warnings)
        if len(warned) < len({run.name for run in runs}):
            warning = language.text("caption.warned", where=language.listing(warned), warning=warning)
        lines.append(warning)
    return list(dict.fromkeys(lines))


def _evidence(language: Language, runs: Sequence[Run], shown: Collection[str]) -> str:
    kinds = {run.evidence for run in runs}
    if len(kinds) == 1:
        return language.text(f"caption.evidence.{kinds.pop()}")
    if "arithmetic" not in kinds:
        return language.text("caption.evidence.oracle")
    bare = {run: "arithmetic" if run.evidence == "arithmetic" else None for run in runs}
    where = _axis_that_explains(language, runs, bare, shown)
    if where is None:
        axes = [key for key in shown if all(key in run.recipe for run in runs)] or ["model", "method"]
        names = dict.fromkeys(" ".join(axis_text(language, run, key) for key in axes) for run in runs if bare[run])
        return language.text("caption.evidence.mixed", where=language.listing(names))
    return language.text("caption.evidence.mixed", where=language.listing(where["arithmetic"]))


def rounding(language: Language, values: Sequence[int]) -> list[str]:
    """The sentence that says so, if the printed parts do not give the printed sum (the last value)."""
    *parts, total = values
    decimals = units.gb_column_decimals(list(values))
    printed = sum(units.rounded(part, units.GB, decimals) for part in parts)
    return [] if printed == units.rounded(total, units.GB, decimals) else [language.text("caption.rounded")]


def verdict_limit(language: Language) -> str:
    return language.text("caption.verdict", limit=language.percent(Fraction(COMFORTABLE_PERCENT, 100)))


def box_figures(language: Language, rows: Iterable[Any], names: Collection[str]) -> list[str]:
    """The sentence that names cards whose memory is the vendor's figure, where a column depends on it."""
    if not any(name in _OF_CARD for name in names):
        return []
    cards = (row.gpu if isinstance(row, Run) else row for row in rows)
    boxed = dict.fromkeys(card.name for card in cards if isinstance(card, Gpu) and card.memory_mib_source == "box")
    return [language.text("caption.box", gpus=language.listing(boxed))] if boxed else []
