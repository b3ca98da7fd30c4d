"""What the calculator calls in the browser: typed keys in, answers as plain data out, the same that recipes.py gives.

    estimate_keys(data, keys)            the estimate of a recipe
    advice_keys(data, keys, alone)       what to change first
    changed_keys(data, keys, changes)    the keys after one of its measures
    shared_keys(data, keys, cards)       the keys with the run divided among so many cards
    cards_keys(data, keys)               the verdict on each card
    limits_keys(data, keys)              the longest sequence, largest batch and rank on the card, and how many of it are enough
    capacity_keys(data, keys, models)    which models fit the card with which method, and how long a sequence

portable.py translates this file with the estimator, so it keeps to the subset described there. `data` is what
`portable.data` makes of the data files.
"""

from __future__ import annotations

from macros.estimator.advice import advise, changed
from macros.estimator.architecture import Architecture, architecture_from_config, context_of
from macros.estimator.beside import beside_step
from macros.estimator.capacity import Bound, divided, largest_batch, largest_rank, longest_sequence, on_one_card, smallest_number
from macros.estimator.fit import Estimate, estimate, headroom_for, verdict_for, with_speed
from macros.estimator.questions import QUESTIONS, questions_from_keys
from macros.estimator.recipe import METHODS, Recipe, recipe_from_keys, with_defaults

DEFAULT_PRESET = "transformers-peft"
REFERENCES = ("model", "config", "gpu", "preset")

# Architectures remember what the estimator worked out for them, so each is made once.
_architectures: dict[str, Architecture] = {}


def estimate_keys(data: dict[str, object], keys: dict[str, object]) -> dict[str, object]:
    """The estimate for `model` or `config`, optional `gpu` and `preset`, and any recipe keys; see recipes.estimate_keys.

    Raises ValueError, one sentence.
    """
    name = keys.get("model")
    architecture = _architecture(data, name, keys.get("config"))
    omits = _record(data, "models", name)["omits"] if name is not None else []
    gpu = keys.get("gpu")
    card = _record(data, "gpus", gpu) if gpu is not None else None
    recipe = _recipe(data, keys)
    result = estimate(architecture, recipe, card["memory"] if card is not None else None)
    asked = questions_from_keys(keys)
    beside = beside_step(architecture, recipe, result.peak_bytes, asked)
    if card is not None:
        result = with_speed(result, architecture, recipe, card["tflops"], card["utilisation"].get(recipe.method), asked)
    return {
        "conditions": {"model": name, "gpu": gpu, "preset": _preset(data, keys), **result.conditions},
        "warnings": [*result.warnings, *beside.warnings, *["omits_" + part for part in omits]],
        "events": beside.events,
        "host_bytes": beside.host,
        "disk_bytes": beside.disk,
        **_figures(result),
    }


def advice_keys(data: dict[str, object], keys: dict[str, object], alone: bool = False) -> dict[str, object]:
    """What to change first, for the keys of `estimate_keys`; see estimator/advice.py for what the fields mean.

    {"peak_bytes", "verdict", "fits_after", "measures": [{"name", "changes", "saving_bytes", "alone_bytes",
    "peak_bytes", "verdict"}]}; verdicts and fits_after are None without a card. With one, the list ends with the
    measure that makes the run fit comfortably, and is empty if it does as it is. `alone_bytes` is None unless `alone`.
    """
    memory = _record(data, "gpus", keys["gpu"])["memory"] if keys.get("gpu") is not None else None
    architecture = _architecture(data, keys.get("model"), keys.get("config"))
    prepare_kbit = _defaults(data, keys, "qlora").get("prepare_kbit", True)
    advice = advise(architecture, _recipe(data, keys), memory, prepare_kbit, alone)
    return {
        "peak_bytes": advice.peak_bytes,
        "verdict": advice.verdict,
        "fits_after": advice.fits_after,
        "measures": [
            {
                "name": measure.name,
                "changes": measure.changes,
                "saving_bytes": measure.saving_bytes,
                "alone_bytes": measure.alone_bytes,
                "peak_bytes": measure.peak_bytes,
                "verdict": measure.verdict,
            }
            for measure in advice.measures
        ],
    }


def changed_keys(data: dict[str, object], keys: dict[str, object], changes: dict[str, object]) -> dict[str, object]:
    """The keys with a measure's `changes`, less those that do not apply any more; for several, one after the other."""
    return changed(keys, changes)


def shared_keys(data: dict[str, object], keys: dict[str, object], cards: int) -> dict[str, object]:
    """The keys with the run on so many of its card, divided as `limits_keys` takes it to be."""
    recipe = _recipe(data, keys)
    shared = divided(recipe) if cards > 1 else on_one_card(recipe)
    changes = {"num_gpus": cards, "parallelism": shared.parallelism}
    if shared.quant_storage != recipe.quant_storage:
        changes["quant_storage"] = shared.quant_storage
    return changed(keys, changes)


def cards_keys(data: dict[str, object], keys: dict[str, object]) -> list[dict[str, object]]:
    """The verdict on each card for the keys of `estimate_keys`, whose `gpu` is left out; in the order of data/gpus.yml.

    [{"gpu", "memory_bytes", "verdict", "headroom_bytes"}]
    """
    recipe = _recipe(data, keys)
    found = estimate(_architecture(data, keys.get("model"), keys.get("config")), recipe)
    cards = []
    for name, gpu in data["gpus"].items():
        memory = gpu["memory"]
        verdict = verdict_for(found.peak_bytes, found.device_bytes, memory, recipe)
        headroom = headroom_for(found.device_bytes, memory, verdict)
        cards.append({"gpu": name, "memory_bytes": memory, "verdict": verdict, "headroom_bytes": headroom})
    return cards


def limits_keys(data: dict[str, object], keys: dict[str, object]) -> dict[str, object]:
    """How far the recipe can be stretched on its card, one key at a time; `gpu` must be given.

    {"longest_sequence", "largest_batch", "largest_rank", "smallest_number"}, each {"comfortable", "tight", "most"}: 0
    where even the smallest value does not fit so; a value equal to "most" is the end of what is tried and not of memory.
    largest_rank is None in full fine-tuning. smallest_number is of cards, 0 where no number is enough. The sequence ends at what the model is made for, where that is known.
    """
    memory = _memory(data, keys)
    architecture = _architecture(data, keys.get("model"), keys.get("config"))
    recipe = _recipe(data, keys)
    rank = largest_rank(architecture, recipe, memory)
    return {
        "longest_sequence": _bound(longest_sequence(architecture, recipe, memory, _context(data, keys))),
        "largest_batch": _bound(largest_batch(architecture, recipe, memory)),
        "largest_rank": None if rank is None else _bound(rank),
        "smallest_number": _bound(smallest_number(architecture, recipe, memory)),
    }


def capacity_keys(
    data: dict[str, object], keys: dict[str, object], models: list[str] | None = None
) -> list[dict[str, object]]:
    """What a card can train: each of `models` (all of data, unless given) with each method.

    keys   `gpu` must be given; `model`, `config` and `method` are left out; the other keys hold where they apply to
           the method

    [{"model", "method", "peak_bytes", "verdict", "headroom_bytes", "longest_sequence": {"comfortable", "tight",
    "most"}}], for each model the methods that the estimator takes with these keys. A page asks for a few models at a time, so that it can show them as they come.
    """
    memory = _memory(data, keys)
    rows = []
    for model in models if models is not None else list(data["models"]):
        for method in METHODS:
            given = changed({key: keys[key] for key in keys if key != "config"}, {"method": method})
            recipe = _recipe(data, given)
            architecture = _architecture(data, model, None)
            found = _estimated(architecture, recipe, memory)
            if found is None:
                continue
            longest = longest_sequence(architecture, recipe, memory, _context(data, {"model": model}))
            rows.append(
                {
                    "model": model,
                    "method": method,
                    "peak_bytes": found.peak_bytes,
                    "verdict": found.verdict,
                    "headroom_bytes": found.headroom_bytes,
                    "longest_sequence": _bound(longest),
                }
            )
    return rows


def _estimated(architecture: Architecture, recipe: Recipe, memory: int) -> Estimate | None:
    try:
        return estimate(architecture, recipe, memory)
    except ValueError:
        return None


def _bound(bound: Bound) -> dict[str, int]:
    return {"comfortable": bound.comfortable, "tight": bound.tight, "most": bound.most}


def _memory(data: dict[str, object], keys: dict[str, object]) -> int:
    """Bytes of the card that must be there."""
    if keys.get("gpu") is None:
        raise ValueError("gpu is missing; it is a key of data/gpus.yml")
    return _record(data, "gpus", keys["gpu"])["memory"]


def _context(data: dict[str, object], keys: dict[str, object]) -> int | None:
    """Tokens that the model is made for, as its config.json says."""
    if keys.get("model") is None:
        return context_of(keys["config"])
    return _record(data, "models", keys["model"])["context"]


def _recipe(data: dict[str, object], keys: dict[str, object]) -> Recipe:
    """The recipe of what was typed and what the preset adds."""
    given = {key: value for key, value in keys.items() if key not in REFERENCES and key not in QUESTIONS}
    return recipe_from_keys(with_defaults(given, _defaults(data, keys, _text(given.get("method")))))


def _preset(data: dict[str, object], keys: dict[str, object]) -> object:
    preset = keys.get("preset")
    if preset is None:
        preset = DEFAULT_PRESET if DEFAULT_PRESET in data["presets"] else None
    return preset


def _defaults(data: dict[str, object], keys: dict[str, object], method: str) -> dict[str, object]:
    """What the preset says for a method."""
    preset = _preset(data, keys)
    return _record(data, "presets", preset)["keys"].get(method, {}) if preset is not None else {}


def _figures(result: Estimate) -> dict[str, object]:
    figures = {
        "peak_bytes": result.peak_bytes,
        "per_gpu_bytes": result.per_gpu_bytes,
        "total_bytes": result.total_bytes,
        "moment": result.moment,
        "moments": {name: {"total": moment.total, "parts": moment.parts} for name, moment in result.moments.items()},
        "reserved_bytes": {"low": result.reserved_bytes.low, "high": result.reserved_bytes.high},
        "device_bytes": {"low": result.device_bytes.low, "high": result.device_bytes.high},
        "parameters": result.parameters,
        "trainable_parameters": result.trainable_parameters,
        "flops_per_step": result.flops_per_step,
        "communication_bytes": result.communication_bytes,
        "evidence": result.evidence,
    }
    for name, rate in (("tokens_per_second", result.tokens_per_second), ("hours", result.hours), ("cost", result.cost)):
        if rate is not None:
            figures[name] = {"low": rate.low, "high": rate.high}
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
