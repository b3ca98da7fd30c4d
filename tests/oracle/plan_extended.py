"""What results.csv does not vary: accumulation, other 4- and 8-bit bases, TRL's and Liger's losses, DoRA, trained
tables, optimizers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

UNTIED = dict(model_type="llama", hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=16,
              num_key_value_heads=4, vocab_size=50000, tie_word_embeddings=False)  # fmt: skip
TIED = dict(model_type="qwen3", hidden_size=1024, intermediate_size=3072, num_hidden_layers=5, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, vocab_size=151936, tie_word_embeddings=True)  # fmt: skip
# Layers outweigh head and tables here.
DEEP = dict(model_type="llama", hidden_size=2048, intermediate_size=8192, num_hidden_layers=8, num_attention_heads=32,
            num_key_value_heads=8, vocab_size=4000, tie_word_embeddings=True)  # fmt: skip
BIASED = dict(model_type="qwen2", hidden_size=1536, intermediate_size=8960, num_hidden_layers=4, num_attention_heads=12,
              num_key_value_heads=2, vocab_size=20000, tie_word_embeddings=False)  # fmt: skip
GEMMA = dict(model_type="gemma3_text", hidden_size=1152, intermediate_size=6912, num_hidden_layers=6, num_attention_heads=4,
             num_key_value_heads=1, head_dim=256, vocab_size=60000, sliding_window=512, query_pre_attn_scalar=256,
             tie_word_embeddings=True)  # fmt: skip

BOTH = (False, True)


def plan() -> list[dict[str, object]]:
    """Configuration and settings of each run."""
    return [
        *accumulation(),
        *quantized(),
        *trl(),
        *dora(),
        *tables(),
        *liger(),
        *optimizers(),
    ]


def made(config: dict[str, object], recipe: str, checkpointing: bool, **settings: object) -> dict[str, object]:
    """One run; adapters of rank 16 on all linear layers unless it says otherwise."""
    run = dict(config=config, recipe=recipe, batch=2, seq=1000, checkpointing=checkpointing, attn="sdpa")
    if "lora" in recipe:
        run.update(rank=16, targets="all-linear", dropout=0.0)
    return run | {"optimizer": "fused"} | settings


def accumulation() -> Iterator[dict[str, object]]:
    """Gradients of the first micro-step live on in the second."""
    recipes = ("full-bf16-pure", "full-mixed-fp32", "full-mixed-master", "lora-bf16", "qlora-nf4")
    for config, recipe, checkpointing in itertools.product((UNTIED, TIED, DEEP), recipes, BOTH):
        yield made(config, recipe, checkpointing, accumulation=2)


def quantized() -> Iterator[dict[str, object]]:
    """NF4 without double quantisation, without autocast, with bf16 adapters as TRL makes them; int8; fp32 base."""
    for recipe, checkpointing in itertools.product(("qlora-nf4", "qlora-nf4-noprep"), BOTH):
        yield made(UNTIED, recipe, checkpointing, double_quant=False)
    for config, recipe, checkpointing in itertools.product(
        (UNTIED, DEEP), ("qlora-trl", "qlora-noautocast", "qlora-pure", "lora-mixed-fp32"), BOTH
    ):
        yield made(config, recipe, checkpointing)
        yield made(config, recipe, checkpointing, targets="qv", dropout=0.05, batch=1, seq=1536)
    for config, recipe, checkpointing in itertools.product(
        (DEEP, BIASED), ("qlora-nf4", "qlora-nf4-noprep", "qlora-trl", "qlora-pure"), BOTH
    ):
        yield made(config, recipe, checkpointing, quantization="int8")


def trl() -> Iterator[dict[str, object]]:
    """TRL's tiled head: more and fewer tokens than a tile, a part of them trained."""
    recipes = ("full-bf16-autocast", "full-mixed-fp32", "full-bf16-pure", "lora-bf16", "lora-mixed-fp32", "qlora-trl", "qlora-nf4")
    for config, recipe in itertools.product((UNTIED, TIED), recipes):
        yield made(config, recipe, True, loss="trl", batch=4, seq=1536)
        yield made(config, recipe, True, loss="trl", batch=1, seq=1000, trained_token_share=0.4)
    for config, recipe in itertools.product((UNTIED, DEEP, GEMMA), ("full-bf16-pure", "lora-bf16", "qlora-trl")):
        yield made(config, recipe, False, loss="trl", batch=8, seq=700, trained_token_share=0.25)
        yield made(config, recipe, True, loss="trl", batch=2, seq=4096)


def dora() -> Iterator[dict[str, object]]:
    """Magnitudes beside the adapters; dropout makes PEFT compute the base product again."""
    for recipe, checkpointing, dropout in itertools.product(
        ("lora-bf16", "lora-bf16-pure", "qlora-nf4", "qlora-nf4-noprep"), BOTH, (0.0, 0.05)
    ):
        yield made(DEEP, recipe, checkpointing, dora=True, dropout=dropout)
    yield made(BIASED, "lora-bf16", True, dora=True)
    yield made(BIASED, "qlora-pure", True, dora=True, targets="qv")


def tables() -> Iterator[dict[str, object]]:
    """Embeddings and head trained in full beside the adapters."""
    for names, recipe, checkpointing in itertools.product(
        ("embed_tokens lm_head", "lm_head", "embed_tokens"), ("lora-bf16", "lora-bf16-pure", "qlora-nf4", "qlora-trl"), BOTH
    ):
        yield made(UNTIED, recipe, checkpointing, modules_to_save=names)


def liger() -> Iterator[dict[str, object]]:
    """Liger's kernels with full logits, with its fused loss, and the loss alone beside adapters."""
    for config, recipe, checkpointing in itertools.product(
        (UNTIED, TIED), ("full-bf16-pure", "full-mixed-fp32", "lora-bf16", "qlora-nf4"), BOTH
    ):
        yield made(config, recipe, checkpointing, kernels="liger")
        yield made(config, recipe, checkpointing, kernels="liger", loss="liger", batch=3)
    for recipe, checkpointing in itertools.product(("full-bf16-pure", "lora-bf16-pure"), BOTH):
        yield made(DEEP, recipe, checkpointing, kernels="liger", batch=4)
        yield made(GEMMA, recipe, checkpointing, kernels="liger", loss="liger", attn="flash")


def optimizers() -> Iterator[dict[str, object]]:
    """Short sequences, so that states and the step decide."""
    names = ("adamw_8bit", "lion_8bit", "lion_32bit", "adafactor", "sgd", "sgd_momentum")
    for name, recipe in itertools.product(names, ("full-bf16-pure", "full-mixed-fp32", "lora-bf16")):
        yield made(BIASED, recipe, True, optimizer=name, batch=1, seq=256)
    for name in names:
        yield made(TIED, "full-bf16-pure", True, optimizer=name, batch=1, seq=128)
