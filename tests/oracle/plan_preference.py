"""DPO and GRPO: TRL's tiled head and all logits, each reference, one and several sequences, generation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from plan_extended import BIASED, DEEP, GEMMA, TIED, UNTIED
from plan_heldout import FAMILIES, shape

SEED = 20261207
BOTH = (False, True)
FULL = ("full-bf16-pure", "full-bf16-autocast", "full-mixed-fp32")
ADAPTED = ("lora-bf16", "lora-bf16-pure", "lora-mixed-fp32", "qlora-nf4", "qlora-trl")


def plan() -> list[dict[str, object]]:
    """Configuration and settings of each run."""
    return [*dpo(), *grpo(), *generation(), *mixed()]


def made(config: dict[str, object], recipe: str, objective: str, **settings: object) -> dict[str, object]:
    """One run; adapters of rank 16 on all linear layers."""
    run = dict(config=config, recipe=recipe, objective=objective, batch=1, seq=1000, checkpointing=True, attn="sdpa")
    if "lora" in recipe:
        run.update(rank=16, targets="all-linear", dropout=0.0)
    return run | {"optimizer": "fused"} | settings


def references(recipe: str, objective: str) -> tuple[str, ...]:
    """What a recipe's policy can be held against. Quantised reference models are not built."""
    own = ("adapter",) if "lora" in recipe else ()
    second = () if "qlora" in recipe else ("model",)
    return (*own, *second, "precomputed" if objective == "dpo" else "none")


def dpo() -> Iterator[dict[str, object]]:
    for config, recipe, loss in itertools.product((UNTIED, DEEP), (*FULL, *ADAPTED), ("trl", "standard")):
        for reference in references(recipe, "dpo"):
            yield made(config, recipe, "dpo", loss=loss, reference=reference)
    for recipe, loss, reference in itertools.product(("lora-bf16", "qlora-trl"), ("trl", "standard"), ("adapter", "precomputed")):
        yield made(TIED, recipe, "dpo", loss=loss, reference=reference, batch=2, seq=700, checkpointing=False)
        yield made(GEMMA, recipe, "dpo", loss=loss, reference=reference, batch=3, seq=512, trained_token_share=0.5)
        yield made(DEEP, recipe, "dpo", loss=loss, reference=reference, batch=4, checkpointing=False, padding=True)
        yield made(BIASED, recipe, "dpo", loss=loss, reference=reference, batch=2, accumulation=2)


def grpo() -> Iterator[dict[str, object]]:
    for config, recipe, loss in itertools.product((UNTIED, DEEP), (*FULL, *ADAPTED), ("trl", "standard")):
        for reference in references(recipe, "grpo"):
            yield made(config, recipe, "grpo", loss=loss, reference=reference, batch=4, prompt=400)
    for recipe, loss in itertools.product((*FULL, "lora-bf16", "qlora-trl"), ("trl", "standard")):
        yield made(TIED, recipe, "grpo", loss=loss, batch=1, prompt=256)
        yield made(GEMMA, recipe, "grpo", loss=loss, batch=8, prompt=200, checkpointing=False)


def generation() -> Iterator[dict[str, object]]:
    """Short prompts and long completions of many sequences, so that the cache decides; and long prompts."""
    for config, recipe in itertools.product((UNTIED, TIED, DEEP, GEMMA), ("lora-bf16", "lora-bf16-pure", "qlora-nf4", "full-bf16-pure")):
        yield made(config, recipe, "grpo", loss="trl", batch=1, seq=6000, prompt=5900, generation="transformers")
        yield made(config, recipe, "grpo", loss="trl", batch=1, seq=6000, prompt=60, accumulation=16, generation="transformers")
        yield made(config, recipe, "grpo", loss="trl", batch=1, seq=1500, prompt=750, accumulation=32, generation="transformers")


def mixed() -> Iterator[dict[str, object]]:
    """Seeded mixes of dense families in odd shapes."""
    rng = random.Random(SEED)
    for number in range(60):
        family = FAMILIES[number % len(FAMILIES)]
        config, recipe = shape(rng, family), rng.choice((*FULL, *ADAPTED))
        objective = rng.choice(("dpo", "grpo"))
        length = rng.choice((384, 500, 1024, 2048))
        settings = dict(
            loss=rng.choice(("trl", "trl", "standard")),
            reference=rng.choice(references(recipe, objective)),
            batch=rng.choice((1, 2, 4)),
            seq=length,
            checkpointing=rng.choice(BOTH),
            attn="flash" if family == "gemma2" else rng.choice(("sdpa", "flash")),
            optimizer=rng.choice(("fused", "foreach")),
        )
        if objective == "grpo":
            settings |= dict(prompt=rng.choice((64, 200, 300)), generation=rng.choice(("none", "transformers")))
        elif rng.random() < 0.5:
            settings |= dict(trained_token_share=0.5)
        yield made(config, recipe, objective, **settings)
