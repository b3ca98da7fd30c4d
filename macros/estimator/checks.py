"""What the keys of a recipe may hold: one check for each kind of value, and what other tools have keys for.

Each raises ValueError with one sentence that names the key and what is allowed.
"""

from __future__ import annotations

from .wording import shown

# What other tools have keys for and this estimator does not model: words of their keys → what to call it.
OUT_OF_SCOPE = {
    "tensor": "tensor parallelism",
    "tp": "tensor parallelism",
    "pipeline": "pipeline parallelism",
    "pp": "pipeline parallelism",
    "sequence": "sequence parallelism",
    "sp": "sequence parallelism",
    "ulysses": "sequence parallelism",
    "context": "sequence parallelism",
    "cp": "sequence parallelism",
    "expert": "expert parallelism",
    "ep": "expert parallelism",
    "ppo": "PPO",
    "rloo": "RLOO",
    "kto": "KTO",
    "bco": "BCO",
    "orpo": "ORPO",
    "cpo": "CPO",
    "simpo": "SimPO",
    "gkd": "distillation",
    "distillation": "distillation",
    "reward": "a reward model",
    "prm": "a reward model",
    "vision": "a vision tower",
    "mmproj": "a vision tower",
}

# Above these a recipe is a typing mistake: no published run comes near. fit.py bounds what they make together.
LIMITS = {
    "micro_batch_size": 1024,
    "sequence_length": 2**20,
    "gradient_accumulation_steps": 2**16,
    "lora_r": 2048,
    "num_gpus": 1024,
    "num_generations": 1024,
    "prompt_length": 2**20,
}


def out_of_scope(word: str) -> str:
    """What a key or a value of other tools asks for, if it is known and not modelled, else nothing."""
    parts = word.replace("-", "_").split("_")
    for part in parts:
        named = part not in ("tensor", "pipeline", "sequence", "context", "expert") or "parallel" in parts or len(parts) == 1
        if part in OUT_OF_SCOPE and named:
            return OUT_OF_SCOPE[part]
    return ""


def listed(names: tuple[str, ...]) -> str:
    """Names with "or" before the last."""
    return ", ".join(names[:-1]) + " or " + names[-1]


def refuse(keys: dict[str, object], names: tuple[str, ...], applies: bool, owner: str) -> None:
    """Refuse keys that mean nothing here, naming what they belong to."""
    for name in names:
        if name in keys and not applies:
            raise ValueError(f"{name} does not apply here; it belongs to {owner}")


def choice(keys: dict[str, object], key: str, allowed: tuple[str, ...], default: str) -> str:
    """One of several names."""
    value = keys.get(key, default)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{key} must be one of {', '.join(allowed)}, got {shown(value)}")
    return value


def flag(keys: dict[str, object], key: str, default: bool) -> bool:
    """Yes or no."""
    value = keys.get(key, default)
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {shown(value)}")
    return value


def count(keys: dict[str, object], key: str, default: int) -> int:
    """A whole number from 1 to its limit."""
    value = keys.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or value > LIMITS[key]:
        raise ValueError(f"{key} must be a whole number from 1 to {LIMITS[key]}, got {shown(value)}")
    return value


def share(keys: dict[str, object], key: str, default: float) -> float:
    """A number from 0 to below 1."""
    value = keys.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"{key} must be a number from 0 to below 1, got {shown(value)}")
    return float(value)
