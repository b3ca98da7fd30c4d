"""Tokens per second from a card's peak rate and the share of it that published runs reach; hours and cost of a data set.

The share, here utilisation, is FLOPs of the step (compute.py: with recomputation, and all pairs of tokens in attention)
per second, over the card's dense bf16 rate. data/utilisations.yml has a range for each kind of card and method, from
published runs, and tests/test_throughputs.py checks it with others. There is no figure for what no published run backs:
a kind of card or method without a range, experts and linear attention (whose loops and kernels differ by a factor of ten
between versions), 8-bit and AWQ weights, DoRA, float32 throughout, offloaded weights or states, DPO and GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .recipe import Recipe

# Passes of fewer tokens than this take up to as long as one of this many: weights have to be read and kernels launched.
# Source: Qwen's table of seconds per step by length, whose times hardly grow below it (data/throughputs.yml).
FULL_PASS = 2048

# What several cards of one machine keep of the sum of their rates. Source: fms-acceleration, FSDP on 2 and 4 A100 at the
# same batch per card keeps 0.72 (Llama 3 8B in full) to 0.99 of one (LoRA, GPTQ); Answer.AI, two RTX 3090 without NVLink,
# FSDP against DDP 0.73. Beyond one machine the network decides.
SHARED_LOW, SHARED_HIGH = 0.7, 1.0
CARDS_IN_A_MACHINE = 8


@dataclass(frozen=True, slots=True)
class Rate:
    """A range of a rate, a time or a cost."""

    low: float
    high: float


def has_speed(arch: Architecture, recipe: Recipe) -> bool:
    """Whether published runs are like this recipe, whatever the card."""
    if recipe.objective != "sft":
        return False
    if recipe.precision == "fp32" or recipe.use_dora or recipe.offload_optimizer or recipe.offload_params:
        return False
    if recipe.method == "qlora" and recipe.quantization in ("int8", "awq"):
        return False
    if recipe.num_gpus > CARDS_IN_A_MACHINE:
        return False
    return not any(shape.num_experts or shape.delta is not None for shape, _ in arch.layer_counts())


def tokens_per_second(arch: Architecture, recipe: Recipe, flops: float, tflops: float, low: float, high: float) -> Rate | None:
    """Tokens per second of all cards together; None where no published run is like this one.

    flops      of a step on one card
    tflops     the card's dense bf16 rate, 10¹² per second
    low, high  utilisation
    """
    if not has_speed(arch, recipe):
        return None
    tokens = float(recipe.tokens) * recipe.gradient_accumulation_steps * recipe.num_gpus
    at_peak = float(tokens) * (float(tflops) * 1e12 / flops)
    share = min(recipe.tokens, FULL_PASS) / FULL_PASS
    shared = recipe.num_gpus > 1
    slow = float(at_peak) * low * share * (SHARED_LOW if shared else 1.0)
    return Rate(slow, float(at_peak) * high * (SHARED_HIGH if shared else 1.0))


def hours(rate: Rate, dataset_tokens: int, epochs: float) -> Rate:
    """Hours for so many passes over a data set."""
    tokens = float(dataset_tokens) * epochs
    return Rate(float(tokens) / rate.high / 3600, float(tokens) / rate.low / 3600)


def cost(time: Rate, price_per_hour: float, num_gpus: int) -> Rate:
    """What the cards cost for so many hours, in the money of the price, which is that of one card."""
    hourly = float(price_per_hour) * num_gpus
    return Rate(float(time.low) * hourly, float(time.high) * hourly)
