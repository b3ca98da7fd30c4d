"""What several cards move: states to the host's memory, weights and gradients between each other."""

from __future__ import annotations

from .architecture import Architecture
from .recipe import Recipe
from .sharding import Sharing, share, stored
from .states import adapter_bytes, states_of, weight_bytes


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
