"""Questions about several cards: how many are enough, what moves to the host, and how much travels between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .architecture import Architecture
from .fit import estimate
from .recipe import LIMITS, Recipe
from .sharding import Sharing, share, stored
from .states import adapter_bytes, states_of, weight_bytes


@dataclass(frozen=True, slots=True)
class Number:
    """The smallest number of cards; None where no number is enough, as each card has to hold more than it can.

    comfortable   with the verdict "comfortable"
    tight         with "comfortable" or "tight"
    """

    comfortable: int | None
    tight: int | None


def smallest_number(arch: Architecture, recipe: Recipe, memory: int) -> Number:
    """The smallest number of cards with so many bytes each, up to 1024, on which a recipe runs by its strategy.

    Without a strategy there is one card only.
    """
    most = 1 if recipe.parallelism == "none" else LIMITS["num_gpus"]
    seen = {}

    def rank(number: int) -> int:
        if number not in seen:
            verdict = estimate(arch, replace(recipe, num_gpus=number), memory).verdict
            seen[number] = ("does_not_fit", "tight", "comfortable").index(verdict)
        return seen[number]

    return Number(_smallest(most, lambda number: rank(number) > 1), _smallest(most, lambda number: rank(number) > 0))


def _smallest(most: int, fits) -> int | None:
    """The smallest number that fits, where every larger one fits too; one card stands apart, as it has no NCCL."""
    if fits(1):
        return 1
    if most == 1 or not fits(most):
        return None
    low, high = 1, 2
    while not fits(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


def offloaded_bytes(arch: Architecture, recipe: Recipe) -> dict[str, int]:
    """What one process keeps in the host's memory instead of on its card, in bytes by part.

    FSDP moves its shards, their gradients and states (CPUOffloadPolicy). DeepSpeed moves float32 masters, states and
    float32 gradients of its partition, with a 16-bit copy for the way back in stages 1 and 2 and 16-bit gradients in
    stage 3 (stage_1_and_2.py, param_buffer_of_bit16_for_cpu_offload; stage3.py, grad_partitions_flat_buffer).
    """
    if not recipe.offload_optimizer and not recipe.offload_params:
        return {}
    sharing = Sharing(arch, recipe)
    found = {}
    if recipe.offload_params:
        kept = stored(recipe)
        found["weights"] = share(weight_bytes(arch, kept) - sharing.weights(), sharing.cards)
        found["adapters"] = sharing.local_bytes if sharing.fsdp and recipe.adapted else 0
        if not sharing.fsdp:
            found["adapters"] = share(adapter_bytes(arch, kept), sharing.cards)
    if sharing.fsdp:
        found["gradients"] = sharing.local_bytes
        found["optimizer_states"] = states_of(sharing.local, recipe.optim, 0)
    elif recipe.offload_optimizer:
        part = share(sharing.elements, sharing.cards)
        found["master_weights"] = 4 * part
        found["optimizer_states"] = states_of(sharing.local, recipe.optim, 4)
        found["gradients"] = (6 if recipe.parallelism == "zero3" else 4) * part
        if recipe.parallelism != "zero3":
            found["weights"] = 2 * part
    return {part: size for part, size in found.items() if size}


def communication_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes that each card sends, and receives, for one optimizer step with all its micro steps.

    A ring sends (N − 1)/N of the data for gathering or for reducing, and twice that for an all-reduce. DDP reduces
    gradients once; ZeRO-1 and 2 reduce them and gather the updated weights; ZeRO-3 and FSDP gather the weights for the
    forward and again for the backward of every micro step.
    """
    cards = recipe.num_gpus
    if cards == 1:
        return 0
    sharing = Sharing(arch, recipe)
    steps = recipe.gradient_accumulation_steps
    gradients = sharing.full_gradients
    if recipe.parallelism == "ddp":
        moved = 2 * gradients
    elif recipe.parallelism == "zero1":
        moved = 2 * gradients
    elif recipe.parallelism == "zero2":
        moved = (steps + 1) * gradients
    else:
        # DeepSpeed reduces after each micro step; Trainer lets FSDP wait for the last one.
        moved = steps * sharing.gathered_per_step() + (1 if sharing.fsdp else steps) * gradients
    return moved // cards * (cards - 1)
