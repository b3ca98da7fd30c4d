"""Seeded random mixes of everything: the families of plan_heldout.py with the settings of plan_extended.py."""

from __future__ import annotations

import random

from plan_heldout import FAMILIES, PHI3_TARGETS, TARGETS, shape

RECIPES = (
    "full-bf16-pure",
    "full-bf16-autocast",
    "full-mixed-fp32",
    "full-mixed-master",
    "lora-bf16",
    "lora-bf16-pure",
    "lora-mixed-fp32",
    "qlora-nf4",
    "qlora-nf4-noprep",
    "qlora-trl",
    "qlora-noautocast",
    "qlora-pure",
)
OPTIMIZERS = ("fused", "fused", "foreach", "forloop", "adamw_8bit", "lion_8bit", "lion_32bit", "adafactor", "sgd", "sgd_momentum")


def plan(count: int = 160, seed: int = 20261130) -> list[dict[str, object]]:
    """Configuration and settings of each run."""
    rng = random.Random(seed)
    return [mix(rng, FAMILIES[index % len(FAMILIES)], RECIPES[index % len(RECIPES)]) for index in range(count)]


def mix(rng: random.Random, family: str, recipe: str) -> dict[str, object]:
    """One run; combinations that the libraries refuse are left out."""
    config = shape(rng, family)
    if rng.random() < 0.6:
        config["vocab_size"] = rng.choice((1000, 4000, 16000))
    attention = rng.choice(("flash", "eager") if family == "gemma2" else ("sdpa", "sdpa", "flash", "eager"))
    run: dict[str, object] = dict(
        config=config,
        recipe=recipe,
        batch=rng.choice((1, 2, 3, 5)),
        seq=rng.choice((333, 700, 1024) if attention == "eager" else (333, 700, 1024, 1999, 3100)),
        checkpointing=rng.random() < 0.6,
        attn=attention,
        padding=attention != "flash" and rng.random() < 0.2,
        accumulation=rng.choice((1, 1, 2)),
        optimizer=rng.choice(OPTIMIZERS) if recipe != "full-mixed-master" else rng.choice(("fused", "foreach", "forloop")),
    )
    run["loss"] = rng.choice(("standard", "standard", "trl", "trl"))
    if run["loss"] == "trl":
        run["trained_token_share"] = rng.choice((1.0, 0.7, 0.3))
    else:
        run["keep_outputs"] = rng.random() < 0.2
    if recipe == "full-mixed-master":
        run["grad32"] = rng.choice(("param", "all", "persistent"))
    if "lora" in recipe:
        run["targets"] = rng.choice(PHI3_TARGETS if family == "phi3" else TARGETS)
        run["rank"] = rng.choice((4, 16, 64))
        run["dropout"] = rng.choice((0.0, 0.05))
        run["dora"] = rng.random() < 0.15
        if not config["tie_word_embeddings"] and rng.random() < 0.25 and run["loss"] == "standard":
            run["modules_to_save"] = rng.choice(("lm_head", "embed_tokens", "embed_tokens lm_head"))
    if recipe.startswith("qlora"):
        run["quantization"] = rng.choice(("nf4", "nf4", "int8"))
        if run["quantization"] == "nf4":
            run["double_quant"] = rng.random() < 0.7
    return run
