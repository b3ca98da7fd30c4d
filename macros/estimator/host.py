"""The host's memory (RAM) of one run on one machine: while loading, training, saving, resuming and merging.

All cards are taken to sit in that machine, each with a process of its own. What a process maps from files is left out:
the system can drop such pages and read them again. Sources: transformers 5.24.0, peft 0.21.2, accelerate 1.15.0,
bitsandbytes 0.50.2, torch 2.13, DeepSpeed 0.19.6; see each function.
"""

from __future__ import annotations

from dataclasses import replace

from .architecture import Architecture
from .disk import optimizer_file_bytes, tensor_file_bytes, trained_file_bytes
from .events import CHECKPOINT_WIDTH, by_bitsandbytes, merge_temporary_bytes
from .parameters import Tensors, parameter_count, trainable_parameters, trained_tensors
from .recipe import Recipe
from .sharding import divides, local_tensors, share, stored, undivided_bytes
from .states import hidden_width, states_of, tensor_state_bytes, weight_bytes

# A process with torch, its libraries and a CUDA context: 2271 MiB (pytorch-2023-106511).
PROCESS = 2271 * 1048576

# Weights are saved in files of up to this size; what lies on the card is copied to the host a file at a time
# (transformers modeling_utils.py save_pretrained, max_shard_size; safetensors 0.8.0 torch.py _flatten_as_ptr).
SHARD = 50 * 10**9


def host_bytes(arch: Architecture, recipe: Recipe) -> dict[str, int]:
    """Bytes of the host's memory by occasion; `peak` is the largest.

    load_by_each   loading if every process loads the whole model: FSDP without fsdp_cpu_ram_efficient_loading
    mapped         the weight files, which the system maps and may drop: free memory of that size spares reading them
                   twice
    """
    processes = PROCESS * recipe.num_gpus
    training = processes + offloaded_bytes(arch, recipe)
    found = {
        "load": processes + load_bytes(arch, recipe, False),
        "training": training,
        "save": training + save_bytes(arch, recipe),
        "resume": training + resume_bytes(arch, recipe),
    }
    if recipe.adapted:
        found["merge"] = PROCESS + merge_bytes(arch, recipe)
    peak = 0
    for name in found:
        peak = max(peak, found[name])
    found["peak"] = peak
    each = processes + load_bytes(arch, recipe, True)
    if each > found["load"]:
        found["load_by_each"] = each
    found["mapped"] = CHECKPOINT_WIDTH * parameter_count(arch)
    return found


def load_bytes(arch: Architecture, recipe: Recipe, each: bool) -> int:
    """Weights that loading makes in the host's memory.

    safetensors maps the files, and from_pretrained takes the tensors from there: in their own dtype they need no
    memory of the process, cast to float32 they need all of it until the model moves to the card. Quantised weights are
    made on the card, tensor by tensor. With DDP and ZeRO-1 and 2 every process casts; FSDP, which holds what it trains
    in float32, lets the first one do it; ZeRO-3 copies from the files into its partitions.
    Offloaded partitions are made beside that.

    each   whether every process of FSDP does it
    Source: transformers modeling_utils.py _load_pretrained_model, core_model_loading.py _materialize_copy; accelerate
    utils/fsdp_utils.py fsdp2_prepare_model, fsdp2_load_full_state_dict.
    """
    moved = offloaded_weight_bytes(arch, recipe)
    if recipe.method == "qlora" or recipe.parallelism == "zero3":
        return moved
    loaded = recipe
    if recipe.parallelism == "fsdp" and not recipe.adapted:
        loaded = stored(recipe)
    if loaded.weight_bytes == CHECKPOINT_WIDTH:
        return moved
    made = recipe.num_gpus if each or recipe.parallelism != "fsdp" else 1
    return moved + made * loaded.weight_bytes * parameter_count(arch)


def offloaded_bytes(arch: Architecture, recipe: Recipe) -> int:
    """What training keeps in the host's memory instead of the cards'."""
    size = paged_bytes(arch, recipe)
    if recipe.checkpoint_offload:
        size += recipe.tokens * hidden_width(recipe) * arch.hidden_size * len(arch.layers)
    if recipe.parallelism == "fsdp" and recipe.offload_params:
        size += fsdp_bytes(arch, recipe)
    elif recipe.offload_optimizer:
        size += zero_bytes(arch, recipe)
    return size * recipe.num_gpus


def paged_bytes(arch: Architecture, recipe: Recipe) -> int:
    """States of one card's paged optimizer, all of which can be in the host's memory when the card is full.

    Source: bitsandbytes optim/optimizer.py get_state_buffer.
    """
    if not recipe.optim.startswith("paged"):
        return 0
    size = 0
    for tensors in local_tensors(arch, recipe):
        resident = tensor_state_bytes(tensors, recipe.optim, tensors.width)
        size += tensors.copies * (tensor_file_bytes(tensors, recipe.optim, tensors.width) - resident)
    return size


def pinned(size: int) -> int:
    """Bytes of page-locked memory for so many: PyTorch rounds them up to a power of two.

    Source: torch ATen/core/CachingHostAllocator.h, allocate.
    """
    whole = 1
    while whole < size:
        whole = whole * 2
    return whole if size else 0


def zero_bytes(arch: Architecture, recipe: Recipe) -> int:
    """DeepSpeed's offloaded optimizer, of one process: a partition of float32 weights, gradients and two moments, and
    of 16-bit gradients or weights; gradients that accumulate; one tensor on its way.

    All but the moments, and in the third stage the float32 weights, is pinned, which is DeepSpeed's default.
    Source: DeepSpeed runtime/zero/stage_1_and_2.py (single_partition_of_fp32_groups, temp_grad_buffer_for_cpu_offload,
    accumulated_grads_in_cpu); stage3.py (grad_partitions_flat_buffer, fp32_partitioned_groups_flat);
    ops/adam/cpu_adam.py.
    """
    part = share(trainable_parameters(arch, recipe), recipe.num_gpus)
    if recipe.parallelism == "zero3":
        return 4 * part + 8 * part + pinned(4 * part) + pinned(2 * part) + offloaded_share(arch, recipe)
    largest = 0
    for tensors in trained_tensors(arch, recipe):
        largest = max(largest, tensors.count)
    accumulated = 2 * part if recipe.gradient_accumulation_steps > 1 else 0
    return 2 * pinned(4 * part) + pinned(2 * part) + 8 * part + pinned(2 * largest) + accumulated


def offloaded_share(arch: Architecture, recipe: Recipe) -> int:
    """One process's part of weights that wait in the host's memory, pinned."""
    if not recipe.offload_params:
        return 0
    kept = stored(recipe)
    return pinned(share(weight_bytes(arch, kept) - undivided_bytes(arch, kept), recipe.num_gpus))


def offloaded_weight_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Weights of all processes that wait in the host's memory, before they are pinned."""
    if not recipe.offload_params:
        return 0
    kept = stored(recipe)
    return weight_bytes(arch, kept) - undivided_bytes(arch, kept)


def fsdp_bytes(arch: Architecture, recipe: Recipe) -> int:
    """FSDP's offload, of one process: its parts of weights and gradients, pinned tensor by tensor, and the states.

    Source: torch distributed/fsdp/_fully_shard/_fsdp_api.py CPUOffloadPolicy, _fsdp_param.py; _flat_param.py.
    """
    local = local_tensors(arch, recipe)
    size = states_of(local, recipe.optim, 0)
    for tensors in local:
        size += 2 * tensors.copies * pinned(tensors.count * tensors.width)
    if not recipe.adapted:
        return size
    if recipe.method == "qlora":
        return size + share(offloaded_weight_bytes(arch, recipe), recipe.num_gpus)
    for tensors in frozen_tensors(arch, recipe):
        size += tensors.copies * pinned(share(tensors.count, recipe.num_gpus) * tensors.width)
    return size


def frozen_tensors(arch: Architecture, recipe: Recipe) -> list[Tensors]:
    """The tensors of the base model, as full fine-tuning has them."""
    return trained_tensors(arch, replace(recipe, method="full", modules_to_save=()))


def save_bytes(arch: Architecture, recipe: Recipe) -> int:
    """What writing a checkpoint copies to the host: weights, then the optimizer's states.

    One card writes a file of weights at a time and the states tensor by tensor. FSDP copies a whole state dict, of all
    processes together or on the first one; DeepSpeed each process's flat partition.
    What is offloaded is there already.
    """
    weights = trained_file_bytes(arch, stored(recipe))
    if recipe.offload_optimizer:
        return 0 if recipe.offload_params else min(weights, SHARD)
    if divides(recipe) and recipe.parallelism != "ddp":
        return max(weights, optimizer_file_bytes(arch, recipe))
    largest = 0
    for tensors in trained_tensors(arch, recipe):
        largest = max(largest, 4 * tensors.count)
    return max(min(weights, SHARD), largest)


def resume_bytes(arch: Architecture, recipe: Recipe) -> int:
    """What resuming reads: on one card the optimizer's file as a whole, which bitsandbytes copies once more.

    With DDP the states go to the cards as they are read; each process of FSDP and DeepSpeed reads its own part.
    Source: transformers trainer.py _load_optimizer_and_scheduler; bitsandbytes optim/optimizer.py load_state_dict.
    """
    if recipe.parallelism == "ddp":
        return 0
    size = optimizer_file_bytes(arch, recipe)
    return 2 * size if by_bitsandbytes(recipe.optim) else size


def merge_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Merging without a card: the 16-bit base model, the adapters in float32, and the largest product twice.

    Source: peft tuners/lora/layer.py, Linear.merge and get_delta_weight; peft_model.py from_pretrained.
    """
    return (
        CHECKPOINT_WIDTH * parameter_count(arch)
        + 4 * trainable_parameters(arch, recipe)
        + merge_temporary_bytes(arch, recipe)
    )
