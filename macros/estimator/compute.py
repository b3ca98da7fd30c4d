"""The floating-point operations of a training step: every matrix product of the tape, forwards, again, and backwards.

A multiply-add counts as two, as in torch.utils.flop_counter.FlopCounterMode, which judges these figures
(tests/test_flops.py). Like it, only matrix products, convolutions and attention kernels count: norms, activations, softmax,
triangular systems and AdamW are bound by memory, not by arithmetic. What only adapters train has no weight gradients of
frozen layers, and nothing below the lowest adapter has a gradient at all. Attention counts all pairs of tokens, although
a causal kernel skips half of them. A mixture of experts counts the experts that a token chose.
"""

from __future__ import annotations

from .architecture import Architecture
from .parameters import trained_tensors
from .recipe import Recipe
from .tape import Tape

# torch.optim.Muon orthogonalises each matrix in so many steps of Newton and Schulz (torch/optim/_muon.py).
MUON_STEPS = 5


def tape_flops(tape: Tape, again: int) -> list[float]:
    """FLOPs of a stage, of which the first `again` ops are computed twice: per token, fixed, per token · length."""
    total = [0.0, 0.0, 0.0]
    for index in range(len(tape.ops)):
        op = tape.ops[index]
        if op.multiplied is not None:
            products = op.forward_products * (2 if index < again else 1) + op.backward_products
            total = plus_flops(total, op.multiplied, 2 * products)
    return total


def forward_flops(tape: Tape) -> list[float]:
    """FLOPs of a stage that runs without gradients: per token, fixed, per token · length."""
    total = [0.0, 0.0, 0.0]
    for op in tape.ops:
        if op.multiplied is not None:
            total = plus_flops(total, op.multiplied, 2 * op.forward_products)
    return total


def plus_flops(total: list[float], more: list[float] | tuple[float, float, float], times: int) -> list[float]:
    """The sum of two forms, the second counted so many times."""
    return [
        float(total[0]) + float(times) * more[0],
        float(total[1]) + float(times) * more[1],
        float(total[2]) + float(times) * more[2],
    ]


def flops_per_step(arch: Architecture, recipe: Recipe, form: list[float]) -> float:
    """FLOPs of one optimizer step on one card, with all of its micro-batches.

    form   of one forward and backward: per token, fixed, per token · length
    """
    tokens = float(recipe.tokens)
    one = float(form[0]) * tokens + float(form[1]) + float(form[2]) * tokens * recipe.sequence_length
    step = float(one) * recipe.gradient_accumulation_steps
    return float(step) + muon_flops(arch, recipe) if recipe.optim == "muon" else step


def muon_flops(arch: Architecture, recipe: Recipe) -> float:
    """Muon's products: two with the matrix itself and one square one in each step, the shorter side first."""
    total = 0.0
    for tensors in trained_tensors(arch, recipe):
        if tensors.rows > 1 and not tensors.table:
            short, long = float(min(tensors.rows, tensors.columns)), float(max(tensors.rows, tensors.columns))
            one = 2.0 * short * short * (2.0 * long + short)
            total = float(total) + float(one) * MUON_STEPS * tensors.copies
    return total
