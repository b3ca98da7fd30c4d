"""A seeded plan of runs that no row of results.csv covers: odd shapes, lengths, ranks, targets and mixes of settings."""

from __future__ import annotations

import random

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "olmo2", "granite")
RECIPES = (
    "full-bf16-pure",
    "full-bf16-autocast",
    "full-mixed-fp32",
    "full-mixed-master",
    "full-fp32",
    "lora-bf16",
    "lora-bf16-pure",
    "qlora-nf4",
    "qlora-nf4-noprep",
)
TARGETS = (
    "qv",
    "attn",
    "all-linear",
    "gate_proj up_proj down_proj",
    "down_proj",
    "o_proj up_proj",
    "q_proj",
)
PHI3_TARGETS = ("qv", "attn", "all-linear", "gate_up_proj down_proj", "down_proj", "o_proj")


def shape(rng: random.Random, family: str) -> dict[str, object]:
    """A small configuration of a family; head_dim · heads need not be hidden_size."""
    head_dim = rng.choice((64, 80, 96, 128, 128, 256) if family != "phi3" else (64, 96, 128))
    kv_heads = rng.choice((1, 2, 4, 8))
    heads = kv_heads * rng.choice((1, 1, 2, 4, 7))
    hidden = 64 * rng.choice((8, 12, 14, 18, 24, 36, 48))
    config: dict[str, object] = {
        "model_type": family,
        "hidden_size": hidden,
        "intermediate_size": 32 * round(hidden * rng.choice((1.5, 2.7, 3.5, 5.5)) / 32),
        "num_hidden_layers": rng.choice((2, 3, 4, 6, 7)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": rng.choice((1000, 8003, 32000, 50257, 128256, 151936, 262144)),
        "max_position_embeddings": 16384,
        "tie_word_embeddings": rng.random() < 0.5,
    }
    if family in ("phi3", "olmo2", "granite"):
        config["hidden_size"] = heads * head_dim
    else:
        config["head_dim"] = head_dim
        if hidden % heads:
            config["hidden_size"] = 64 * heads  # transformers refuses the rest
    if family in ("llama", "qwen3", "olmo2", "granite"):
        config["attention_bias"] = rng.random() < 0.4
    if family in ("llama", "granite"):
        config["mlp_bias"] = rng.random() < 0.3
    if family == "mistral":
        config["sliding_window"] = rng.choice((None, 512, 1024))
    if family in ("gemma2", "gemma3_text"):
        config.update(sliding_window=rng.choice((512, 1024)), query_pre_attn_scalar=head_dim)
    if family == "gemma2" and rng.random() < 0.3:
        config.update(final_logit_softcapping=None, attn_logit_softcapping=None)
    if family == "gemma3_text":
        config["sliding_window_pattern"] = rng.choice((2, 3, 6))
    if family in ("qwen2", "qwen3") and rng.random() < 0.4:
        config.update(use_sliding_window=True, sliding_window=512, max_window_layers=1)
    if family == "phi3":
        config.update(pad_token_id=0, sliding_window=rng.choice((None, 1024)), original_max_position_embeddings=16384)
        if rng.random() < 0.4:
            config["partial_rotary_factor"] = 0.75
    return config


def plan(count: int = 144, seed: int = 20261201) -> list[dict[str, object]]:
    """Configuration and settings of each run."""
    rng = random.Random(seed)
    runs = []
    for index in range(count):
        family = FAMILIES[index % len(FAMILIES)]
        recipe = RECIPES[(index // len(FAMILIES) + index) % len(RECIPES)]
        attentions = ("flash", "eager") if family == "gemma2" else ("sdpa", "sdpa", "flash", "eager")
        attention = rng.choice(attentions)
        lengths = (333, 511, 700, 1024, 1500) if attention == "eager" else (333, 511, 1000, 1537, 2048, 3001, 4100)
        run: dict[str, object] = dict(
            config=shape(rng, family),
            recipe=recipe,
            batch=rng.choice((1, 1, 2, 3, 4, 8)),
            seq=rng.choice(lengths),
            checkpointing=rng.random() < 0.5,
            attn=attention,
            keep_outputs=rng.random() < 0.25,
            padding=attention != "flash" and rng.random() < 0.25,
        )
        if "lora" in recipe:
            run["targets"] = rng.choice(PHI3_TARGETS if family == "phi3" else TARGETS)
            run["rank"] = rng.choice((4, 8, 16, 24, 64, 128))
            run["dropout"] = rng.choice((0.0, 0.0, 0.05, 0.1))
        run["optimizer"] = rng.choice(("fused", "fused", "foreach", "forloop"))
        if recipe == "full-mixed-master":
            run["grad32"] = rng.choice(("param", "all", "persistent"))
        runs.append(run)
    return runs
