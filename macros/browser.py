"""What the calculator calls in the browser: typed keys in, an estimate as plain data out, the same answer as recipes.py gives.

portable.py translates this file with the estimator, so it keeps to the subset described there. `data` is what
`portable.data` makes of the data files.
"""

from __future__ import annotations

from macros.estimator.architecture import Architecture, architecture_from_config
from macros.estimator.fit import Estimate, estimate
from macros.estimator.recipe import recipe_from_keys, with_defaults

DEFAULT_PRESET = "transformers-peft"
REFERENCES = ("model", "config", "gpu", "preset")

# Architectures remember what the estimator worked out for them, so each is made once.
_architectures: dict[str, Architecture] = {}


def estimate_keys(data: dict[str, object], keys: dict[str, object]) -> dict[str, object]:
    """The estimate for `model` or `config`, optional `gpu` and `preset`, and any recipe keys; see recipes.estimate_keys.

    Raises ValueError, one sentence.
    """
    given = {key: value for key, value in keys.items() if key not in REFERENCES}
    name = keys.get("model")
    architecture = _architecture(data, name, keys.get("config"))
    omits = _record(data, "models", name)["omits"] if name is not None else []
    gpu = keys.get("gpu")
    memory = _record(data, "gpus", gpu)["memory"] if gpu is not None else None
    preset = keys.get("preset")
    if preset is None:
        preset = DEFAULT_PRESET if DEFAULT_PRESET in data["presets"] else None
    defaults = _record(data, "presets", preset)["keys"].get(_text(given.get("method")), {}) if preset is not None else {}
    result = estimate(architecture, recipe_from_keys(with_defaults(given, defaults)), memory)
    return {
        "conditions": {"model": name, "gpu": gpu, "preset": preset, **result.conditions},
        "warnings": [*result.warnings, *["omits_" + part for part in omits]],
        **_figures(result),
    }


def _figures(result: Estimate) -> dict[str, object]:
    figures = {
        "peak_bytes": result.peak_bytes,
        "moment": result.moment,
        "moments": {name: {"total": moment.total, "parts": moment.parts} for name, moment in result.moments.items()},
        "reserved_bytes": {"low": result.reserved_bytes.low, "high": result.reserved_bytes.high},
        "device_bytes": {"low": result.device_bytes.low, "high": result.device_bytes.high},
        "parameters": result.parameters,
        "trainable_parameters": result.trainable_parameters,
        "evidence": result.evidence,
    }
    if result.verdict is not None:
        figures["verdict"] = result.verdict
        figures["headroom_bytes"] = result.headroom_bytes
    return figures


def _architecture(data: dict[str, object], name: object, config: object) -> Architecture:
    if (name is None) == (config is None):
        raise ValueError("give either model, a key of data/models.yml, or config, the object of a config.json")
    if name is None and not isinstance(config, dict):
        raise ValueError(f"config must be an object with the keys of a config.json, got {config!r}")
    if name is not None:
        config = _record(data, "models", name)["config"]
    key = f"{config!r}"
    if key not in _architectures:
        _architectures[key] = architecture_from_config(config)
    return _architectures[key]


def _record(data: dict[str, object], kind: str, name: object) -> dict[str, object]:
    if not isinstance(name, str) or name not in data[kind]:
        raise ValueError(f"data/{kind}.yml has no {name!r}")
    return data[kind][name]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
