"""What people type (a model's key, a card's key, a preset, recipe keys) → an estimate, the one way for pages and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from macros import yamlfile
from macros.dataset import Dataset
from macros.estimator import (
    QUESTIONS,
    Architecture,
    Beside,
    Estimate,
    Recipe,
    architecture_from_config,
    beside_step,
    estimate,
    questions_from_keys,
    recipe_from_keys,
    with_speed,
)
from macros.estimator.architecture import context_of
from macros.estimator.recipe import with_defaults
from macros.findings import quote

DEFAULT_PRESET = "transformers-peft"
REFERENCES = ("model", "config", "gpu", "preset")
"""The keys that name something outside the recipe; all others are the estimator's."""


def estimate_keys(dataset: Dataset, keys: Mapping[str, Any]) -> Estimate:
    """The estimate for `model` or `config`, optional `gpu` and `preset`, any recipe keys and questions.

    A key that is given beats the preset; a key of the preset that does not apply to the method is left out.
    The conditions of the result also name model, card and preset. Raises `ValueError`, one sentence.
    """
    given = {key: value for key, value in keys.items() if key not in (*REFERENCES, *QUESTIONS)}
    config, omits = _config(dataset, keys)
    written = json.dumps(config, sort_keys=True)
    architecture = _architecture(written)
    gpu = dataset.gpus[keys["gpu"]] if keys.get("gpu") is not None else None
    preset, complete = _preset(dataset, keys.get("preset"), given)
    recipe = recipe_from_keys(complete)
    result = estimate(architecture, recipe, gpu.memory if gpu else None)
    asked = questions_from_keys(dict(keys))
    beside = _beside(written, recipe, result.peak_bytes, tuple(asked.items()))
    if gpu is not None:
        utilisation = dataset.utilisation(gpu.key, recipe.method)
        result = with_speed(result, architecture, recipe, gpu.bf16_tflops, utilisation, asked)
    names = {"model": keys.get("model"), "gpu": gpu.key if gpu else None, "preset": preset}
    warnings = (*result.warnings, *beside.warnings, *(f"omits_{part}" for part in omits))
    return replace(result, conditions={**names, **result.conditions}, warnings=warnings, beside=beside)


@dataclass(frozen=True)
class Question:
    """What somebody asked about, as the estimator takes it.

    memory         bytes of the card; None without one
    context        tokens that the model is made for; None where its configuration does not say
    prepare_kbit   whether the preset's framework casts what is not quantised to float32 for QLoRA
    """

    architecture: Architecture
    recipe: Recipe
    memory: int | None
    context: int | None
    prepare_kbit: bool


def question(dataset: Dataset, keys: Mapping[str, Any]) -> Question:
    """The keys of `estimate_keys` for questions beyond one estimate. Raises `ValueError`, one sentence."""
    given = {key: value for key, value in keys.items() if key not in (*REFERENCES, *QUESTIONS)}
    config, _ = _config(dataset, keys)
    _, complete = _preset(dataset, keys.get("preset"), given)
    _, switched = _preset(dataset, keys.get("preset"), {"method": "qlora"})
    return Question(
        architecture=_architecture(json.dumps(config, sort_keys=True)),
        recipe=recipe_from_keys(complete),
        memory=dataset.gpus[keys["gpu"]].memory if keys.get("gpu") is not None else None,
        context=context_of(config),
        prepare_kbit=bool(switched.get("prepare_kbit", True)),
    )


def result(estimate: Estimate) -> dict[str, Any]:
    """An estimate as the JSON object that `python -m macros estimate --json` prints; bytes are whole numbers."""
    answer: dict[str, Any] = {
        "peak_bytes": estimate.peak_bytes,
        "per_gpu_bytes": estimate.per_gpu_bytes,
        "total_bytes": estimate.total_bytes,
        "moment": estimate.moment,
        "moments": {
            name: {"total": moment.total, "parts": dict(moment.parts)} for name, moment in estimate.moments.items()
        },
        "reserved_bytes": {"low": estimate.reserved_bytes.low, "high": estimate.reserved_bytes.high},
        "device_bytes": {"low": estimate.device_bytes.low, "high": estimate.device_bytes.high},
        "parameters": estimate.parameters,
        "trainable_parameters": estimate.trainable_parameters,
        "flops_per_step": estimate.flops_per_step,
        "communication_bytes": estimate.communication_bytes,
        "conditions": dict(estimate.conditions),
        "evidence": estimate.evidence,
        "warnings": [_sentence(warning) for warning in estimate.warnings],
    }
    if estimate.beside is not None:
        beside = estimate.beside
        answer |= {"events": beside.events, "host_bytes": beside.host, "disk_bytes": beside.disk}
    for name in ("tokens_per_second", "hours", "cost"):
        if (rate := getattr(estimate, name)) is not None:
            answer[name] = {"low": rate.low, "high": rate.high}
    if estimate.verdict is not None:
        answer |= {"verdict": estimate.verdict, "headroom_bytes": estimate.headroom_bytes}
    return answer


def _config(dataset: Dataset, keys: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The configuration to compute with, and what it leaves out of the published model."""
    model, config = keys.get("model"), keys.get("config")
    if (model is None) == (config is None):
        raise ValueError("give either model, a key of data/models.yml, or config, the object of a config.json")
    if model is not None:
        record = dataset.models[model]
        return record.config, record.omits
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be an object with the keys of a config.json, got {quote(config)}")
    return config, ()


def _preset(dataset: Dataset, name: Any, given: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The preset's key and the recipe's keys, completed with those of its defaults that apply to the method."""
    if name is None:
        if DEFAULT_PRESET not in dataset.presets:
            return None, dict(given)
        name = DEFAULT_PRESET
    preset = dataset.presets[name]
    return name, with_defaults(given, preset.defaults(str(given.get("method"))))


@lru_cache(maxsize=256)
def _architecture(config: str) -> Architecture:
    """The architecture of a configuration as JSON text: it remembers what the estimator has worked out for it."""
    return architecture_from_config(json.loads(config))


@lru_cache(maxsize=2048)
def _beside(config: str, recipe: Recipe, peak: int, asked: tuple[tuple[str, Any], ...]) -> Beside:
    """What lies outside a step: no card changes it, and tables ask for one recipe on many cards."""
    return beside_step(_architecture(config), recipe, peak, dict(asked))


@cache
def _english() -> Mapping[str, str]:
    # Read as data, because language.py brings Babel, which a program asking for one estimate need not wait for.
    path = "macros/messages/en.yml"
    return yamlfile.read(Path(__file__).parent / "messages" / "en.yml", path).value


def _sentence(warning: str) -> str:
    return _english().get(f"warning.{warning}", warning)
