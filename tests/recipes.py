"""Made-up recipes over all options, for tests that hold the translated estimator against CPython."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from macros.estimator import objective, recipe

SEED = 20261201

OPTIONS: dict[str, tuple[Any, ...]] = {
    "method": recipe.METHODS,
    "base_dtype": tuple(recipe.DTYPE_BYTES),
    "precision": recipe.PRECISIONS,
    "optim": recipe.OPTIMIZERS,
    "foreach": (True, False),
    "micro_batch_size": (1, 2, 3, 7, 8, 16, 64),
    "sequence_length": (1, 2, 128, 500, 2048, 4096, 4097, 8192, 32768, 131072),
    "gradient_accumulation_steps": (1, 2, 16),
    "gradient_checkpointing": (True, False),
    "checkpoint_offload": (True, False),
    "attention": recipe.ATTENTIONS,
    "loss": recipe.LOSSES,
    "kernels": recipe.KERNELS,
    "lora_r": (1, 7, 16, 64, 256),
    "lora_dropout": (0, 0.05, 0.1),
    "target_modules": ("all-linear", ["q_proj", "v_proj"], ["o_proj", "down_proj", "o_proj"], ["qkv_proj"], ["gate"]),
    "adapter_dtype": ("float32", "bfloat16"),
    "use_dora": (True, False),
    "modules_to_save": ([], ["lm_head"], ["lm_head", "embed_tokens"]),
    "quantization": recipe.QUANTIZATIONS,
    "double_quant": (True, False),
    "prepare_kbit": (True, False),
    "keep_outputs": (True, False),
    "padding": (True, False),
    "master_gradients": recipe.MASTER_GRADIENTS,
    "transformers": recipe.TRANSFORMERS,
    "use_reentrant": (True, False),
    "kbit_tables": ("float32", "bfloat16"),
    "quantized_inputs_kept": (True, False),
    "trained_token_share": (1, 0.5, 0.123, 0.001),
    "parallelism": recipe.PARALLELISMS,
    "num_gpus": (1, 2, 3, 8, 128),
    "fsdp_version": recipe.FSDP_VERSIONS,
    "offload_optimizer": (True, False),
    "offload_params": (True, False),
    "quant_storage": recipe.QUANT_STORAGES,
    "objective": ("sft", "sft", *objective.OBJECTIVES),
    "reference": objective.REFERENCES,
    "num_generations": (1, 2),
    "prompt_length": (1, 100, 512),
    "generation": objective.GENERATIONS,
    "vllm_memory_share": (0, 0.3, 0.45),
}
COUNTS = ("micro_batch_size", "sequence_length")


def random_recipes(data: dict[str, Any], structures: int, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Recipes over all options, with twenty pairs of batch and length for each choice of the others.

    The estimator remembers what such pairs share, but for losses in chunks, which get three pairs.
    """
    chance = random.Random(seed)
    models, gpus, presets = (list(data[kind]) for kind in ("models", "gpus", "presets"))
    for _ in range(structures):
        method = chance.choice(recipe.METHODS)
        keys = {"method": method}
        for key in recipe.applicable_keys(method):
            if key not in COUNTS and chance.random() < 0.4:
                keys.setdefault(key, chance.choice(OPTIONS[key]))
        keys = without_contradictions(keys)
        if chance.random() < 0.7:
            keys["model"] = chance.choice(models)
        else:
            keys["config"] = changed_config(data["models"][chance.choice(models)]["config"], chance)
        preset = chance.choice([None, *presets]) if len(keys) < 6 else None
        chunks = keys.get("loss", "standard") != "standard" or preset in ("trl", "unsloth")
        for _ in range(3 if chunks else 20):
            yield {
                **keys,
                **{key: chance.choice(OPTIONS[key]) for key in COUNTS},
                "gpu": chance.choice([None, *gpus]),
                "preset": preset,
            }


def without_contradictions(keys: dict[str, Any]) -> dict[str, Any]:
    """The recipe less the options that the estimator refuses beside the others."""
    while True:
        try:
            recipe.recipe_from_keys(keys)
            return keys
        except ValueError as error:
            named = [key for key in keys if key != "method" and str(error).startswith(key)]
            assert named, error
            keys = {key: value for key, value in keys.items() if key != named[-1]}


def changed_config(config: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """A model nobody has published: other sizes in the shape of one that somebody has."""
    config = json.loads(json.dumps(config))
    inner = config.get("text_config", config)
    for key, values in {
        "hidden_size": (512, 1536, 4096),
        "num_hidden_layers": (1, 2, 13),
        "vocab_size": (1000, 32000, 262208),
        "intermediate_size": (1000, 11008),
        "tie_word_embeddings": (True, False),
        "attention_bias": (True, False),
        "sliding_window": (None, 256, 4096),
    }.items():
        if key in inner and chance.random() < 0.4:
            inner[key] = chance.choice(values)
    return config
